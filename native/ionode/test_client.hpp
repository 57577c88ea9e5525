// Clients of an I/O node, for native tests and the fuzzers.

#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "check.hpp"
#include "node.hpp"

namespace penstock {

inline penstock_request request(std::uint32_t operation, std::uint32_t bytes = 0) {
  return {PENSTOCK_WIRE_MAGIC, operation, 1, 0, 0, bytes, 0};
}

// A client on another host: one connection, and one file open. Ends the test if anything but the
// expected comes back.
class Carried {
 public:
  struct Where {
    std::uint16_t port;
    std::string root;
    std::string token;
  };

  // `host`: the last byte of its address.
  Carried(const Where& where, std::uint64_t session, unsigned host = 1)
      : data(new std::uint64_t[bytes / 8]) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(where.port);
    CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    const int yes = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const timeval patience{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    penstock_introduction introduction{};
    introduction.session[0] = session;
    introduction.job[0] = static_cast<char>('a' + session % 2);
    introduce(introduction, reinterpret_cast<const std::uint8_t*>(where.token.data()));
    struct stat is{};
    CHECK(::stat((where.root + "/f").c_str(), &is) == 0);
    penstock_request open = request(PENSTOCK_OPEN, 1);
    open.flags = O_RDWR;
    open.offset = is.st_ino;
    send(open, "f", 1);
    const std::int64_t handle = answer();
    CHECK(handle >= 0);
    handle_ = static_cast<std::uint32_t>(handle);
  }
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;
  ~Carried() {
    ::close(socket_);
    delete[] data;
  }

  std::int64_t call(std::uint32_t operation, std::uint64_t offset = 0, std::uint32_t length = 0) {
    ask(operation, offset, length);
    const std::int64_t result = answer();
    if (operation == PENSTOCK_READ && result > 0) {
      const auto count = static_cast<std::size_t>(result);
      CHECK(::recv(socket_, data, count, MSG_WAITALL) == result);
    }
    return result;
  }

  void ask(std::uint32_t operation, std::uint64_t offset, std::uint32_t length) {
    penstock_request message = request(operation, length);
    message.file = handle_;
    message.offset = offset;
    send(message, data, operation == PENSTOCK_WRITE ? length : 0);
  }

  std::int64_t answer() const {
    penstock_reply reply{};
    CHECK(::recv(socket_, &reply, sizeof reply, MSG_WAITALL) == sizeof reply);
    CHECK(reply.number == requests_);
    return reply.result;
  }

  static constexpr std::uint32_t bytes = 256 << 10;
  std::uint64_t* data;

 private:
  void introduce(const penstock_introduction& introduction, const std::uint8_t* token) {
    penstock_transcript seen{};
    seen.hello = request(PENSTOCK_HELLO, sizeof introduction);
    seen.introduction = introduction;
    send(seen.hello, &introduction, sizeof introduction);
    penstock_challenge challenge{};
    CHECK(::recv(socket_, &seen.reply, sizeof seen.reply, MSG_WAITALL) == sizeof seen.reply);
    CHECK(::recv(socket_, &challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge);
    CHECK(seen.reply.result == 0);
    std::memcpy(seen.nonce, challenge.nonce, sizeof seen.nonce);
    std::uint8_t proof[PENSTOCK_DIGEST_BYTES];
    penstock_prove(&seen, PENSTOCK_ROLE_NODE, token, proof);
    CHECK(penstock_same_digest(proof, challenge.proof));
    penstock_prove(&seen, PENSTOCK_ROLE_CLIENT, token, proof);
    send(request(PENSTOCK_PROVE, sizeof proof), proof, sizeof proof);
    CHECK(answer() == 0);
  }

  void send(penstock_request message, const void* follows, std::size_t length) {
    message.number = ++requests_;
    CHECK(::send(socket_, &message, sizeof message, MSG_NOSIGNAL) == sizeof message);
    if (length == 0) return;
    CHECK(::send(socket_, follows, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length));
  }

  int socket_ = -1;
  std::uint32_t handle_ = 0;
  std::uint32_t requests_ = 0;
};

}  // namespace penstock
