// The least that a forwarder does: bytes from a socket into a file, one thread a connection.
//
//   bare_server SOCKET

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
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

int main(int, char** argv) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 64) != 0)
    return 1;
  std::puts("serves");
  std::fflush(stdout);
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) return 1;
    std::thread(serve, fd).detach();
  }
}
