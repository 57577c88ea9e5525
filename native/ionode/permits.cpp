#include "permits.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace penstock {
namespace {

// The page's words are shared with another process.
template <class T>
T load(T& word, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref(word).load(order);
}
template <class T>
void store(T& word, T value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref(word).store(value, order);
}

}  // namespace

void Permits::answer(Permit& permit, std::uint32_t terms, std::uint32_t calls, std::uint64_t bytes,
                     Time until) const {
  penstock_permit& page = *permit.page;
  store(page.terms, terms);
  store(page.calls, calls);
  store(page.bytes, bytes);
  store<std::uint64_t>(page.until, until);
  store(page.answered, permit.asked, std::memory_order_seq_cst);
  if (load(page.sleeps, std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, &page.answered, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// What others waited for costs at least what places usually move: else who holds them and moves
// little would be the next again and again.
void Permits::charge_for_place(Permit& permit, UserQueue& queue, Time now) {
  const Time since = std::exchange(permit.scarce_since, never);
  if (since == never) return;
  const double held = static_cast<double>(now - std::min(now, since)) / 1e9;
  const auto due = static_cast<std::uint64_t>(held * static_cast<double>(place_bytes_per_second));
  const std::uint64_t paid = permit.metered ? permit.used : permit.bytes;
  if (due > paid) queue.charge(permit, due - paid);
}

// It has no credit any more, and no place in service.
void Permits::release(Permit& permit, UserQueue& queue, Time now) {
  if (permit.state == Permit::State::aside) {
    aside_.erase({permit.hangs_at, &permit});
    const auto user = hanging_.find(permit.uid);
    if (permit.hangs && --user->second == 0) hanging_.erase(user);
  } else if (held_.erase(&permit) == 0) {
    return;
  }
  ++releases_;
  if (permit.metered && permit.used < permit.credit)
    queue.refund(permit, permit.credit - permit.used);
  charge_for_place(permit, queue, now);
  queue.served(permit);
  permit.state = Permit::State::idle;
  permit.credit = permit.used = 0;
}

bool Permits::ask(Permit& permit, const penstock_permit_message& question, const CreditRules& rules,
                  UserQueue& queue, Time now) {
  permit.asked = question.number;
  // The kernel moves no more by one call, and what is charged must stay where doubles are exact.
  permit.wanted = std::min<std::uint64_t>(question.bytes, INT_MAX);
  if (permit.state == Permit::State::queued) return false;
  count_hanging(now);
  const auto user = hanging_.find(permit.uid);
  const bool all_hang = user != hanging_.end() && user->second >= rules.places;
  release(permit, queue, now);
  if (all_hang) {
    answer(permit, PENSTOCK_UNMANAGED, 1, question.bytes, now);
    return false;
  }
  permit.kind = question.kind == PENSTOCK_CALL_READ    ? Kind::read
                : question.kind == PENSTOCK_CALL_WRITE ? Kind::write
                                                       : Kind::sync;
  permit.offset =
      permit.kind == Kind::sync ? 0 : std::min<std::uint64_t>(question.offset, LLONG_MAX);
  permit.bytes = permit.kind == Kind::sync ? 0 : static_cast<std::uint32_t>(permit.wanted);
  permit.arrived = now;
  permit.state = Permit::State::queued;
  queued_.insert(&permit);
  return true;
}

void Permits::give_back(Permit& permit, std::uint32_t number, UserQueue& queue, Time now) {
  if (permit.asked == number && permit.state != Permit::State::queued) release(permit, queue, now);
}

void Permits::leave(Permit& permit, UserQueue& queue, Time now) {
  if (permit.state == Permit::State::queued) {
    permit.left = true;
  } else {
    release(permit, queue, now);
  }
}

void Permits::grant(const Batch& batch, const CreditRules& rules, UserQueue& queue, Time now) {
  queue.also_in_service(*batch.front(), static_cast<std::uint32_t>(batch.size()) - 1);
  const bool contended = queue.size() > 0 || now < contended_until_;
  for (Request* request : batch) {
    Permit& permit = static_cast<Permit&>(*request);
    queued_.erase(&permit);
    permit.state = Permit::State::held;
    held_.insert(&permit);
    if (permit.left) {
      release(permit, queue, now);
      continue;
    }
    permit.scarce_since = contended ? now : never;
    std::uint64_t bytes = permit.wanted;
    std::uint32_t calls = 1;
    permit.metered = contended;
    if (!rules.each_call) {
      calls = PENSTOCK_CALLS_KEPT;
      const Time recent = now - std::min(now, contention_lasts);
      const double share = queue.relative_weight(permit, recent);
      const auto fair = static_cast<std::uint64_t>(static_cast<double>(quantum) * share);
      const std::uint64_t more = std::min(2 * permit.generous, most_generous);
      bytes = std::max(bytes, contended ? fair : std::max(quantum, more));
      permit.generous = contended ? 0 : bytes;
    }
    permit.credit = bytes;
    permit.used = 0;
    permit.allowance = bytes;
    permit.calls = calls;
    permit.seen = load(permit.page->calls_made);
    permit.since = permit.granted = now;
    permit.owed_since = never;
    permit.until = now + lasts;
    if (permit.metered && bytes > permit.bytes) queue.charge(permit, bytes - permit.bytes);
    answer(permit, permit.metered ? PENSTOCK_METERED : 0, calls, bytes, permit.until);
  }
}

// The client marks a call first and looks for a recall then; we recall first and look then.
bool Permits::take_back(Permit& permit, UserQueue& queue, Time now) {
  store(permit.page->recalled, permit.asked, std::memory_order_seq_cst);
  if (load(permit.page->in_call, std::memory_order_seq_cst) != 0) return false;
  release(permit, queue, now);
  return true;
}

void Permits::recall(const CreditRules& rules, UserQueue& queue, Time now) {
  contended_until_ = now + contention_lasts;
  // `release` takes out of the set.
  const std::vector<Permit*> holders(held_.begin(), held_.end());
  for (Permit* permit : holders) {
    if (permit->scarce_since == never) permit->scarce_since = now;
    if (!permit->metered) take_back(*permit, queue, now);
  }
  const UserQueue::Parts parts = queue.parts(rules.places, now);
  if (parts.wanted && held_.size() >= rules.places) recall_parts(parts, queue, now);
}

// What a user holds beyond its part, the longest held first. The calls of those that are not given
// back are that user's own hanging ones: their places are others' at once.
void Permits::recall_parts(const UserQueue::Parts& parts, UserQueue& queue, Time now) {
  std::unordered_map<uid_t, std::vector<Permit*>> by_user;
  for (Permit* permit : held_) by_user[permit->uid].push_back(permit);
  for (auto& [user, permits] : by_user) {
    const std::size_t part = parts.of(queue.weight(user));
    if (permits.size() <= part) continue;
    std::sort(permits.begin(), permits.end(),
              [](const Permit* a, const Permit* b) { return a->granted < b->granted; });
    permits.resize(permits.size() - part);
    for (Permit* permit : permits) {
      if (permit->owed_since == never) permit->owed_since = now;
      if (!take_back(*permit, queue, now) && now >= permit->owed_since + returns_within)
        set_aside(*permit, queue, permit->owed_since + hangs_after, now);
    }
  }
}

void Permits::set_aside(Permit& permit, UserQueue& queue, Time hangs_at, Time now) {
  charge_for_place(permit, queue, now);
  held_.erase(&permit);
  permit.state = Permit::State::aside;
  permit.hangs = false;
  permit.hangs_at = hangs_at;
  aside_.insert({hangs_at, &permit});
}

void Permits::count_hanging(Time now) {
  while (!aside_.empty() && aside_.begin()->first <= now) {
    Permit& permit = *aside_.begin()->second;
    aside_.erase(aside_.begin());
    permit.hangs = true;
    ++hanging_[permit.uid];
  }
}

Time Permits::look_at(bool places_taken) const {
  if (queued_.empty()) return never;
  const Time beat = beat_ + beat_every;
  return places_taken ? std::min(looked_ + idle_after, beat) : beat;
}

void Permits::look(bool places_taken, UserQueue& queue, Time now) {
  if (now >= beat_ + beat_every) {
    beat_ = now;
    for (Permit* permit : queued_)
      store(permit->page->heartbeat, load(permit->page->heartbeat) + 1);
  }
  if (!places_taken || now < looked_ + idle_after) return;
  looked_ = now;
  const std::vector<Permit*> holders(held_.begin(), held_.end());
  for (Permit* permit : holders) {
    const std::uint64_t made = load(permit->page->calls_made, std::memory_order_acquire);
    if (made != permit->seen) {
      permit->seen = made;
      permit->since = now;
    }
    // Progress is a claim: a credit that was not renewed long after its end has lapsed.
    const bool over = now >= permit->until + hangs_after;
    if (now - permit->since < idle_after && !over) continue;
    if (load(permit->page->in_call) == 0) {
      take_back(*permit, queue, now);
    } else if (over || now - permit->since >= hangs_after) {
      set_aside(*permit, queue, now, now);
    }
  }
}

bool Permits::collect(Permit& permit, std::uint32_t& budget,
                      const std::function<void(const Called&)>& each) {
  penstock_permit& page = *permit.page;
  const std::uint64_t made = load(page.calls_made, std::memory_order_acquire);
  const std::uint64_t most = std::min<std::uint64_t>(permit.calls, PENSTOCK_CALLS_KEPT);
  if (made - permit.collected > most) permit.collected = made - most;
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(made - permit.collected, budget));
  budget -= count;
  permit.calls -= count;
  for (const std::uint64_t end = permit.collected + count; permit.collected != end;
       ++permit.collected) {
    penstock_called& entry = page.call[permit.collected % PENSTOCK_CALLS_KEPT];
    const std::uint32_t how = load(entry.how);
    const std::uint32_t kind = how % PENSTOCK_CALL_DURATION;
    const std::uint64_t moved = std::min<std::uint64_t>(load(entry.bytes), permit.allowance);
    const Time ended = load(entry.ended);
    const Time took = Time{how / PENSTOCK_CALL_DURATION} * 64;
    permit.allowance -= moved;
    permit.used += moved;
    each({kind == PENSTOCK_CALL_READ    ? Kind::read
          : kind == PENSTOCK_CALL_WRITE ? Kind::write
                                        : Kind::sync,
          load(entry.file), load(entry.offset), moved, ended - std::min(ended, took), ended});
  }
  return permit.collected == made;
}

}  // namespace penstock
