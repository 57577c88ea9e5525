// The least that a forwarder does: bytes from a socket into a file, one thread a connection.
//
//   bare_server
//
// It listens on a port of loopback, and says which.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

struct Head {
  std::uint64_t offset;
  std::uint64_t bytes;
};

static bool receive(int fd, void* to, std::size_t bytes) {
  return recv(fd, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

static void serve(int fd) {
  Head head;
  if (!receive(fd, &head, sizeof head)) return;
  std::string name(head.bytes, '\0');
  if (!receive(fd, name.data(), name.size())) return;
  const int file = open(name.c_str(), O_RDWR);
  std::vector<char> data(4 << 20);
  while (receive(fd, &head, sizeof head) && receive(fd, data.data(), head.bytes)) {
    const std::int64_t done =
        pwrite(file, data.data(), head.bytes, static_cast<off_t>(head.offset));
    if (send(fd, &done, sizeof done, MSG_NOSIGNAL) != sizeof done) break;
  }
  close(file);
  close(fd);
}

int main() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return 1;
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) return 1;
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    std::thread(serve, fd).detach();
  }
}
