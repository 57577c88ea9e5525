// Whoever connects to the I/O node, from this host or from another one.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

namespace penstock {

enum class Transport : std::uint8_t { local, tcp };  // `unix` is a macro to some compilers

// What epoll's events point to.
struct Peer {
  const Transport transport;
};

// Where a peer comes from, so that one origin cannot take what others need: a user of this host, or
// the network address (of IPv6, the network that one host usually has).
struct Origin {
  std::array<std::byte, 9> name{};  // behind the kind
  bool operator==(const Origin&) const = default;
};

}  // namespace penstock

template <>
struct std::hash<penstock::Origin> {
  std::size_t operator()(const penstock::Origin& origin) const {
    std::uint64_t last = 0;
    std::memcpy(&last, origin.name.data() + 1, sizeof last);
    return std::hash<std::uint64_t>()(last ^ static_cast<std::uint64_t>(origin.name[0]) << 56);
  }
};
