// A client that writes blocks of a file, over and over: by pwrite, or to a bare server.
//
//   client FILE SIZE COUNT SPAN FIRST STRIDE [PORT]
//
// Block k lies at FIRST + k * STRIDE, modulo SPAN bytes. It says "ready" when it has written one of
// them, begins with the first byte on its input, and prints the seconds that its writes took.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Head {
  std::uint64_t offset;
  std::uint64_t bytes;
};

static int connect_to(const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

static void send_block(int fd, const Head& head, const std::vector<char>& data) {
  iovec pieces[2] = {{const_cast<Head*>(&head), sizeof head},
                     {const_cast<char*>(data.data()), data.size()}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  std::size_t left = sizeof head + data.size();
  while (left > 0) {
    const ssize_t sent = sendmsg(fd, &message, 0);
    if (sent <= 0) std::abort();
    left -= static_cast<std::size_t>(sent);
    std::size_t rest = static_cast<std::size_t>(sent);
    for (; message.msg_iovlen > 0 && rest >= message.msg_iov->iov_len;
         ++message.msg_iov, --message.msg_iovlen) {
      rest -= message.msg_iov->iov_len;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + rest;
      message.msg_iov->iov_len -= rest;
    }
  }
  std::int64_t answer;
  if (recv(fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer ||
      answer != static_cast<std::int64_t>(data.size()))
    std::abort();
}

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const std::size_t size = std::strtoull(argv[2], nullptr, 10);
  const auto number = [argv](int k) { return std::strtoull(argv[k], nullptr, 10); };
  const std::uint64_t count = number(3), span = number(4), first = number(5), stride = number(6);
  const std::vector<char> data(size, 'x');
  const int file = open(argv[1], O_CREAT | O_RDWR, 0644);
  const int server = argc > 7 ? connect_to(argv[7]) : -1;
  if (server >= 0) {
    Head name{0, std::strlen(argv[1])};
    if (send(server, &name, sizeof name, 0) != sizeof name ||
        send(server, argv[1], name.bytes, 0) < 0)
      std::abort();
  }
  const auto write_block = [&](std::uint64_t k) {
    const std::uint64_t offset = first + k * stride % span;
    if (server >= 0)
      send_block(server, {offset, size}, data);
    else if (pwrite(file, data.data(), size, static_cast<off_t>(offset)) !=
             static_cast<ssize_t>(size))
      std::abort();
  };
  write_block(0);  // the way there is open now
  std::puts("ready");
  std::fflush(stdout);
  char go;
  if (read(0, &go, 1) != 1) return 1;
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t k = 0; k < count; ++k) write_block(k);
  std::printf("%.9f\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return 0;
}
