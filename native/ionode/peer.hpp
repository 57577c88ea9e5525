// Whoever connects to the I/O node, from this host or from another one.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

enum class Transport : std::uint8_t { local, tcp };  // `unix` is a macro to some compilers

// What epoll's events point to.
struct Peer {
  const Transport transport;
};

// Where a peer comes from, so that one origin cannot take what others need: a user of this host, or
// the network address (of IPv6, the network that one host usually has).
struct Origin {
  std::array<std::byte, 8> name{};
  bool operator==(const Origin&) const = default;
};

}  // namespace penstock
