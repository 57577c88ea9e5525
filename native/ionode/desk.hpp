// The clients of this host at an I/O node: they ask for permission, and say what they have done.

#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "caller.hpp"
#include "queues.hpp"
#include "rounds.hpp"
#include "shared.hpp"

namespace penstock {

class Desk {
 public:
  Desk(Shared& shared, Queues& queues);

  // For the poller, which has no lock: a caller's socket has something to be read.
  void hear(Caller& caller) {
    if (!caller.leaving) rounds_.add(caller);
  }
  // When something that is left is to be read or acted upon.
  Time ready_at() const { return rounds_.ready_at(); }
  void read(Time now);

  // With the lock, the poller.
  void act(const Lock& lock, Time now);
  Caller& let_in(const Lock&, int descriptor, uid_t uid, const Origin& origin, Quota::Share share);
  // It is not heard any more. Its threads' last calls are read when it is its user's turn.
  void doom(const Lock& lock, Caller& caller);
  void doom_all(const Lock& lock);
  void close_doomed(Lock& lock);

  // With the lock, any thread.
  void grant(const Lock& lock, const Batch& batch);
  // For a measurement: of each user's calls as many as nobody notices. The others are known when
  // their threads ask.
  void collect_all(const Lock& lock);
  std::size_t size(const Lock&) const { return callers_.size(); }

 private:
  friend class Rehearsal;
  bool act_upon(const Lock& lock, const CallerMessage& said, std::uint32_t& budget, Time now);
  bool greet(const Lock& lock, Caller& caller, const penstock_permit_hello& hello);
  bool collect(const Lock& lock, Permit& permit, std::uint32_t& budget);
  void refuse(const Lock& lock, Caller& caller);
  bool part(const Lock& lock, Caller& caller, std::uint32_t& budget);
  std::uint64_t share_of(const Lock& lock, const Group& group) const;

  Shared& shared_;
  Queues& queues_;
  const std::shared_ptr<Quota> processes_;
  const std::shared_ptr<Quota> permits_;
  std::unordered_map<Caller*, std::unique_ptr<Caller>> callers_;
  std::vector<Caller*> doomed_;
  Rounds<Caller, CallerMessage> rounds_;  // the poller's
};

}  // namespace penstock
