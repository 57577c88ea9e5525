// The sockets on which an I/O node accepts its clients.

#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// For clients of this host; `all_users` of it may connect.
int listen_unix(const std::string& path, bool all_users);

// For clients of other hosts, on a numeric address. Port 0: any.
struct TcpListener {
  int descriptor;
  std::uint16_t port;
};
TcpListener listen_tcp(const std::string& host, std::uint16_t port);

}  // namespace penstock
