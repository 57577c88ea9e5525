#include "shared.hpp"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace penstock {
namespace {

std::uint64_t descriptors_for_clients(const Limits& limits) {
  if (limits.descriptors != 0) return limits.descriptors;
  constexpr rlim_t own = 64;  // of the process itself, and for a moment
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  return most.rlim_cur > 2 * own ? most.rlim_cur - own : own;
}

// Those who have not said who they are leave descriptors to the others.
std::size_t strangers_of_all(std::uint64_t descriptors) {
  constexpr std::uint64_t most = 1024;
  return std::clamp<std::uint64_t>(descriptors / 4, 1, most);
}

}  // namespace

Time now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<Time>(at.tv_sec) * 1'000'000'000 + static_cast<Time>(at.tv_nsec);
}

Shared::Shared(const NodeOptions& given)
    : options(given),
      own_uid(::geteuid()),
      descriptors(std::make_shared<Quota>(descriptors_for_clients(given.limits))),
      observer(now()),
      sessions(given.limits),
      strangers(given.limits.strangers, strangers_of_all(descriptors->total())) {}

}  // namespace penstock
