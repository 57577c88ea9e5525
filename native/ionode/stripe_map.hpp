// Which storage target holds a byte of a file; src/penstock/live/storage/stripe_layout.py knows
// more formats.
//
// Lustre's layouts are read from the extended attribute that its client shows to all users. What is
// in it is checked, and what is not understood is no layout: the fixed one is then used.

#pragma once

#include <sys/xattr.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace penstock {

class StripeMap {
 public:
  static StripeMap fixed(std::uint64_t stripe_size, std::uint32_t count) {
    return StripeMap({{0, end_of_file, stripe_size, in_a_row(count)}});
  }

  // The layout of an open file, if its file system reports one.
  static std::optional<StripeMap> of(int file, const char* attribute = "lustre.lov") {
    const ssize_t length = ::fgetxattr(file, attribute, nullptr, 0);
    if (length <= 0) return std::nullopt;
    std::vector<std::uint8_t> value(static_cast<std::size_t>(length));
    if (::fgetxattr(file, attribute, value.data(), value.size()) != length) return std::nullopt;
    return from_lustre(value);
  }

  static std::optional<StripeMap> from_lustre(std::span<const std::uint8_t> value) {
    if (value.size() < sizeof(std::uint32_t)) return std::nullopt;
    std::vector<Component> components;
    if (number<std::uint32_t>(value, 0) != composite_magic) {
      auto only = component(value, 0, end_of_file);
      if (!only) return std::nullopt;
      components.push_back(std::move(*only));
      return StripeMap(std::move(components));
    }
    if (value.size() < composite_head_bytes) return std::nullopt;
    const auto entries = number<std::uint16_t>(value, 14);
    if (value.size() < composite_head_bytes + entries * entry_bytes) return std::nullopt;
    for (std::size_t k = 0; k < entries; ++k) {
      const auto entry = value.subspan(composite_head_bytes + k * entry_bytes, entry_bytes);
      const std::uint64_t offset = number<std::uint32_t>(entry, 24);
      const std::uint64_t size = number<std::uint32_t>(entry, 28);
      if (offset + size > value.size()) return std::nullopt;
      if ((number<std::uint32_t>(entry, 4) & unused_flags) != 0) continue;
      auto next = component(value.subspan(offset, size), number<std::uint64_t>(entry, 8),
                            number<std::uint64_t>(entry, 16));
      if (!next) return std::nullopt;
      components.push_back(std::move(*next));
    }
    if (components.empty()) return std::nullopt;
    return StripeMap(std::move(components));
  }

  // Beyond the layout: as in its last component. Of mirrors, the first one counts.
  std::uint32_t server(std::uint64_t offset) const {
    const Component* part = &components_.back();
    for (const Component& other : components_) {
      if (other.start <= offset && offset < other.end) {
        part = &other;
        break;
      }
    }
    // Lustre counts stripes from the beginning of the file, also in later components.
    return part->targets[offset / part->stripe_size % part->targets.size()];
  }

 private:
  static constexpr std::uint64_t end_of_file = std::numeric_limits<std::uint64_t>::max();
  // Of lustre_user.h: magic numbers, sizes of its packed structures, flags of components that hold
  // no current data (stale, extension, parity), and the stripe count that means all targets.
  static constexpr std::uint32_t plain_magic = 0x0BD10BD0;
  static constexpr std::uint32_t pool_magic = 0x0BD30BD0;
  static constexpr std::uint32_t composite_magic = 0x0BD60BD0;
  static constexpr std::size_t plain_head_bytes = 32;
  static constexpr std::size_t pool_head_bytes = 48;
  static constexpr std::size_t composite_head_bytes = 32;
  static constexpr std::size_t entry_bytes = 48;
  static constexpr std::size_t object_bytes = 24;
  static constexpr std::uint32_t unused_flags = 0x1 | 0x40 | 0x80;
  static constexpr std::uint16_t all_targets = 0xFFFF;

  struct Component {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t stripe_size;
    std::vector<std::uint32_t> targets;
  };

  explicit StripeMap(std::vector<Component> components) : components_(std::move(components)) {}

  template <class T>
  static T number(std::span<const std::uint8_t> bytes, std::size_t at) {
    T value = 0;
    for (std::size_t k = sizeof(T); k-- > 0;) value = static_cast<T>(value << 8 | bytes[at + k]);
    return value;
  }

  static std::vector<std::uint32_t> in_a_row(std::uint32_t count) {
    std::vector<std::uint32_t> targets(count == 0 ? 1 : count);
    for (std::uint32_t k = 0; k < targets.size(); ++k) targets[k] = k;
    return targets;
  }

  static std::optional<Component> component(std::span<const std::uint8_t> layout,
                                            std::uint64_t start, std::uint64_t end) {
    if (layout.size() < plain_head_bytes) return std::nullopt;
    const auto magic = number<std::uint32_t>(layout, 0);
    const auto stripe_size = number<std::uint32_t>(layout, 24);
    const auto count = number<std::uint16_t>(layout, 28);
    if ((magic != plain_magic && magic != pool_magic) || stripe_size == 0) return std::nullopt;
    const std::size_t head = magic == plain_magic ? plain_head_bytes : pool_head_bytes;
    Component part{start, end, stripe_size, {}};
    if (layout.size() > head) {  // a component without data has no objects
      if (layout.size() < head + count * object_bytes) return std::nullopt;
      for (std::size_t k = 0; k < count; ++k) {
        part.targets.push_back(number<std::uint32_t>(layout, head + k * object_bytes + 20));
      }
    }
    if (part.targets.empty()) part.targets = in_a_row(count == all_targets ? 1 : count);
    return part;
  }

  std::vector<Component> components_;
};

}  // namespace penstock
