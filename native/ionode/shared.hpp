// What the parts of an I/O node have in common: its options, its lock, what it counts, who its
// clients are, and what none of them may take alone.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "lock.hpp"
#include "observer.hpp"
#include "quota.hpp"
#include "scheduler.hpp"
#include "sessions.hpp"
#include "strangers.hpp"

namespace penstock {

struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t batches = 0;
  std::uint64_t aggregated = 0;
  std::uint64_t errors = 0;
  std::uint64_t refused = 0;
  std::uint64_t dropped = 0;
};

struct NodeOptions {
  std::uint64_t id = 0;
  bool all_users = false;  // of this host
  Limits limits;
  Settings settings;
  std::uint64_t stripe_size = 1 << 20;
  Time patience = 30'000'000'000;  // with a client that does not read its reply
};

struct Shared {
  explicit Shared(const NodeOptions& options);

  const NodeOptions options;
  const uid_t own_uid;
  // What no user of this host and no other host may take alone.
  const std::shared_ptr<Quota> descriptors;

  std::mutex mutex;
  Guarded<Counts> counts;
  Guarded<Observer> observer;
  Guarded<Sessions> sessions;
  Guarded<Strangers> strangers;
  Guarded<bool> draining{false};
  std::condition_variable changed;  // connections or threads went
};

Time now();

}  // namespace penstock
