// Permissions for the clients of this host: which of their threads may make calls now, and how many
// before they ask again. docs/internals/permits.md describes the rules.
//
// A thread that holds a credit takes one of the places in service, as a call that the I/O node
// makes itself does. While nobody waits for a place credits are large. When somebody does, the
// large ones are recalled, and the next ones are metered: used up, they are given back at once.
//
// Pure: the caller passes the time and holds the lock. Pages are their clients' to write, and not
// trusted: what they say changes only what their own client gets.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "permit.h"
#include "quota.hpp"
#include "scheduler.hpp"
#include "user_queue.hpp"

namespace penstock {

struct Caller;

// A call that a client says it has made.
struct Called {
  Kind kind;
  std::uint64_t file;
  std::uint64_t offset;
  std::uint64_t bytes;
  Time began;
  Time ended;
};

// One thread of a client process. As a Request it is what the thread asked for when it was queued.
struct Permit : Request {
  enum class State : std::uint8_t {
    idle,
    queued,
    held,   // it has a credit, and a place in service
    aside,  // its call goes on, but the place was given to others
  };

  Permit(Caller& caller, penstock_permit& page, uid_t uid, Quota::Share share = {})
      : caller(&caller), page(&page), uid(uid), share(std::move(share)) {
    permit = true;
    user = uid;
  }

  Caller* const caller;
  penstock_permit* page;
  uid_t uid;
  const Quota::Share share;
  State state = State::idle;
  std::uint32_t asked = 0;      // the number of the last question
  std::uint64_t wanted = 0;     // its bytes
  std::uint64_t credit = 0;     // bytes that were granted last
  std::uint64_t generous = 0;   // of the last credit while nobody waited
  std::uint64_t allowance = 0;  // bytes that it may claim to have moved
  std::uint32_t calls = 0;      // calls that it may claim to have made
  std::uint64_t used = 0;       // of the credit, as far as its calls are known
  std::uint64_t collected = 0;  // calls of its page that are known
  std::uint64_t seen = 0;       // calls when it was last looked at
  Time since = 0;               // no progress since then
  Time until = 0;               // end of its credit
  Time scarce_since = never;    // others wait for its place since then
  Time granted = 0;             // its credit
  Time hangs_at = never;        // set aside: its call counts as hanging then
  bool hangs = false;
  Time owed_since = never;  // its place is another user's part since then
  bool metered = false;
  bool left = false;  // its process has gone while it was queued
};

// What decides about credits besides the queue.
struct CreditRules {
  std::uint32_t places = 16;  // in service
  bool each_call = false;     // a request scheduler is in force, which orders calls one by one
};

class Permits {
 public:
  static constexpr std::uint64_t quantum = 1 << 20;         // bytes of a metered credit, at least
  static constexpr std::uint64_t most_generous = 64 << 20;  // bytes of any other
  static constexpr Time lasts = 1'000'000'000;              // a credit, unless it is recalled
  static constexpr Time contention_lasts = 20'000'000;      // after the last recall
  static constexpr Time idle_after = 2'000'000;       // a metered credit without a call is recalled
  static constexpr Time returns_within = 2'000'000;   // a place that is another user's part
  static constexpr Time hangs_after = 2'000'000'000;  // a call that has not come back
  static constexpr std::uint64_t place_bytes_per_second = 4 << 20;  // that a place costs, at least
  static constexpr Time beat_every = 100'000'000;  // those that wait see that we live

  // A thread asks; its credit, if it has one, is given back. True: the permit is to be queued.
  bool ask(Permit& permit, const penstock_permit_message& question, const CreditRules& rules,
           UserQueue& queue, Time now);
  void give_back(Permit& permit, std::uint32_t number, UserQueue& queue, Time now);
  // Its process has gone.
  void leave(Permit& permit, UserQueue& queue, Time now);

  // The queue gave these: answer them.
  void grant(const Batch& batch, const CreditRules& rules, UserQueue& queue, Time now);

  // Somebody waits for a place, and none is free: take back what is not in use, and, if a user has
  // less than its part of the places, what others hold beyond theirs.
  void recall(const CreditRules& rules, UserQueue& queue, Time now);

  std::size_t held() const { return held_.size(); }
  // Places that were given back, ever.
  std::uint64_t releases() const { return releases_; }
  // When to call `look`; never while nobody waits.
  Time look_at(bool places_taken) const;
  void look(bool places_taken, UserQueue& queue, Time now);

  // New entries of the permit's page, oldest first, which are taken from a budget. False: there are
  // more than that. Those that were overwritten before are lost.
  static bool collect(Permit& permit, std::uint32_t& budget,
                      const std::function<void(const Called&)>& each);

 private:
  void recall_parts(const UserQueue::Parts& parts, UserQueue& queue, Time now);
  void set_aside(Permit& permit, UserQueue& queue, Time hangs_at, Time now);
  void count_hanging(Time now);
  void charge_for_place(Permit& permit, UserQueue& queue, Time now);
  void release(Permit& permit, UserQueue& queue, Time now);
  bool take_back(Permit& permit, UserQueue& queue, Time now);
  void answer(Permit& permit, std::uint32_t terms, std::uint32_t calls, std::uint64_t bytes,
              Time until) const;

  std::unordered_set<Permit*> held_;
  std::unordered_set<Permit*> queued_;
  std::set<std::pair<Time, Permit*>> aside_;  // by when their calls count as hanging
  std::unordered_map<uid_t, std::uint32_t> hanging_;
  Time contended_until_ = 0;
  Time looked_ = 0;
  std::uint64_t releases_ = 0;
  Time beat_ = 0;
};

}  // namespace penstock
