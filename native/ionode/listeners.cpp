#include "listeners.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace penstock {
namespace {

constexpr int backlog = 1024;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

int listen_unix(const std::string& path, bool all_users) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    fail(path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail(path);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      // Who may connect is decided by the peer's identity, not by the socket's mode.
      (all_users && ::chmod(path.c_str(), 0666) != 0) || ::listen(listener, backlog) != 0) {
    const int error = errno;
    ::close(listener);
    errno = error;
    fail(path);
  }
  return listener;
}

TcpListener listen_tcp(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0) {
    throw std::invalid_argument("'" + host + "' is not a numeric address");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> held(addresses, &::freeaddrinfo);
  const int listener =
      ::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail(host);
  const int yes = 1;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener, addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener, backlog) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    const int error = errno;
    ::close(listener);
    errno = error;
    fail(host);
  }
  // Both kinds of address have the port at the same place.
  return {listener, ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port)};
}

}  // namespace penstock
