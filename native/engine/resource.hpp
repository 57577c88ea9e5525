#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "exact_sum.hpp"
#include "heap.hpp"

namespace penstock {

inline constexpr double never = std::numeric_limits<double>::infinity();

// One job's part of an I/O phase on one resource.
struct Transfer {
  enum class State : std::uint8_t { done, waiting, sharing, capped };

  double remaining = 0.0;  // isolated seconds; current only while waiting
  double weight = 1.0;
  double next_weight = 1.0;  // scratch of a change of weights
  double max_share = 1.0;
  double finish = 0.0;  // virtual while sharing, real while capped
  double segment_start = 0.0;
  double segment_share = 0.0;
  std::int32_t job = 0;
  std::int32_t resource = 0;
  std::int32_t position = 0;
  State state = State::done;
  bool wants_cap = false;
  bool chosen = false;  // scratch of a preemptive choice

  [[nodiscard]] bool transferring() const { return state >= State::sharing; }
  [[nodiscard]] double ratio() const { return max_share / weight; }
};

using Transfers = std::vector<Transfer>;

struct Segment {
  std::int32_t job;
  std::int32_t resource;
  double start;
  double end;
  double share;
};

// A resource of capacity one (or capacity(k) under interference) shared by weights.
//
// Sharing transfers live in virtual time: the clock V advances by capacity / (sum of weights) a
// second, and a transfer of s isolated seconds and weight w that starts at V0 ends at V0 + s / w,
// whoever comes or goes meanwhile. Transfers that cannot use their part (max_share) live in real
// time at their cap; water-filling decides who is which. Every arithmetic expression below has a
// twin in sim/fluid.py in the same order: the two must agree to the last bit.
class Resource {
 public:
  Resource(Transfers& transfers, std::span<const double> capacity, bool caps,
           std::vector<Segment>* timeline)
      : transfers_(&transfers),
        sharing_(Track{&transfers}),
        capped_(Track{&transfers}),
        capacity_of_(capacity),
        caps_(caps),
        timeline_(timeline) {}

  void advance(double now) {
    if (!sharing_.empty()) clock_ += (now - updated_) * level_ / weight_.value();
    updated_ = now;
  }

  [[nodiscard]] double remaining(const Transfer& x, double now) const {
    if (x.state == Transfer::State::capped) return std::max(0.0, x.finish - now) * x.max_share;
    if (x.state != Transfer::State::sharing) return x.remaining;
    const double clock = clock_ + (now - updated_) * level_ / weight_.value();
    return std::max(0.0, x.finish - clock) * x.weight;
  }

  // Appends the transfers that share the resource now.
  void transferring(std::vector<std::int32_t>& items) const {
    for (const auto& entry : sharing_.entries()) items.push_back(entry.item);
    for (const auto& entry : capped_.entries()) items.push_back(entry.item);
  }

  void admit(std::int32_t item) {
    Transfer& x = transfer(item);
    x.segment_start = updated_;
    x.segment_share = 0.0;
    share(x, item);
    if (caps_) {
      x.wants_cap = false;
      open_.insert(rank(x, item));
      weight_.add(x.weight);
    }
  }

  // Preempts: the transfer keeps what it has left and waits.
  void withdraw(std::int32_t item) {
    Transfer& x = transfer(item);
    const double left = remaining(x, updated_);
    leave(x, item);
    x.remaining = left;
    x.state = Transfer::State::waiting;
  }

  // The transfer that `next_end` announced has come to its end.
  void finish(std::int32_t item, double now) {
    Transfer& x = transfer(item);
    if (x.state == Transfer::State::sharing) {
      clock_ = x.finish;
      updated_ = now;
    } else {
      advance(now);
    }
    leave(x, item);
    x.remaining = 0.0;
    x.state = Transfer::State::done;
  }

  // Called once after the changes of an event: shares, caps and the next end follow from who
  // transfers now.
  void settle() {
    const std::size_t active = sharing_.size() + capped_.size();
    next_end_ = never;
    if (active == 0) return;
    const double capacity = capacity_of_[std::min(active, capacity_of_.size()) - 1];
    level_ = capacity;
    if (caps_) fill(capacity);
    if (!sharing_.empty()) {
      const auto& top = sharing_.top();
      next_end_ = updated_ + std::max(0.0, top.key - clock_) * weight_.value() / level_;
      next_item_ = top.item;
      next_job_ = top.tie;
    }
    if (!capped_.empty()) {
      const auto& top = capped_.top();
      const double end = std::max(top.key, updated_);
      if (end < next_end_ || (end == next_end_ && top.tie < next_job_)) {
        next_end_ = end;
        next_item_ = top.item;
        next_job_ = top.tie;
      }
    }
    if (timeline_ != nullptr) record_shares();
  }

  [[nodiscard]] double next_end() const { return next_end_; }
  [[nodiscard]] std::int32_t next_job() const { return next_job_; }
  [[nodiscard]] std::int32_t next_item() const { return next_item_; }

 private:
  struct Track {
    Transfers* transfers;
    void operator()(std::int32_t item, std::size_t at) const {
      (*transfers)[static_cast<std::size_t>(item)].position = static_cast<std::int32_t>(at);
    }
  };
  using Rank = std::tuple<double, std::int32_t, std::int32_t>;  // cap / weight, job, item

  Transfer& transfer(std::int32_t item) { return (*transfers_)[static_cast<std::size_t>(item)]; }

  static Rank rank(const Transfer& x, std::int32_t item) { return {x.ratio(), x.job, item}; }

  void share(Transfer& x, std::int32_t item) {
    if (sharing_.empty()) {
      clock_ = 0.0;
      if (!caps_) weight_.reset();
    }
    x.state = Transfer::State::sharing;
    x.finish = clock_ + x.remaining / x.weight;
    sharing_.push({x.finish, x.job, item});
    if (!caps_) weight_.add(x.weight);
  }

  void leave(Transfer& x, std::int32_t item) {
    close_segment(x);
    (x.state == Transfer::State::sharing ? sharing_ : capped_)
        .remove(static_cast<std::size_t>(x.position));
    if (caps_ && x.wants_cap) {
      closed_.erase(rank(x, item));
      capped_share_.add(-x.max_share);
    } else {
      if (caps_) open_.erase(rank(x, item));
      weight_.add(-x.weight);
    }
  }

  // Water-filling: a transfer is capped exactly when its cap is below its part of the level. Both
  // loops only move the border between the two sorted sets, so an event costs O(moved log n).
  void fill(double capacity) {
    moved_.clear();
    while (!closed_.empty()) {
      const std::int32_t item = std::get<2>(*closed_.rbegin());
      Transfer& x = transfer(item);
      const ExactSum others = capped_share_.minus(x.max_share);
      if (x.ratio() < others.taken_from(capacity) / weight_.with(x.weight)) break;
      capped_share_ = others;
      weight_.add(x.weight);
      x.wants_cap = false;
      open_.insert(closed_.extract(std::prev(closed_.end())));
      moved_.push_back(item);
    }
    while (!open_.empty()) {
      const std::int32_t item = std::get<2>(*open_.begin());
      Transfer& x = transfer(item);
      if (!(x.ratio() < capped_share_.taken_from(capacity) / weight_.value())) break;
      capped_share_.add(x.max_share);
      weight_.add(-x.weight);
      x.wants_cap = true;
      closed_.insert(open_.extract(open_.begin()));
      moved_.push_back(item);
    }
    for (const std::int32_t item : moved_) {
      Transfer& x = transfer(item);
      if (!x.wants_cap || x.state == Transfer::State::capped) continue;
      const double left = std::max(0.0, x.finish - clock_) * x.weight;
      sharing_.remove(static_cast<std::size_t>(x.position));
      x.state = Transfer::State::capped;
      x.finish = updated_ + left / x.max_share;
      capped_.push({x.finish, x.job, item});
    }
    for (const std::int32_t item : moved_) {
      Transfer& x = transfer(item);
      if (x.wants_cap || x.state == Transfer::State::sharing) continue;
      x.remaining = std::max(0.0, x.finish - updated_) * x.max_share;
      capped_.remove(static_cast<std::size_t>(x.position));
      share(x, item);
    }
    level_ = capped_share_.taken_from(capacity);
  }

  void record_shares() {
    for (const auto& entry : sharing_.entries()) {
      Transfer& x = transfer(entry.item);
      change_share(x, x.weight * level_ / weight_.value());
    }
    for (const auto& entry : capped_.entries()) {
      Transfer& x = transfer(entry.item);
      change_share(x, x.max_share);
    }
  }

  void change_share(Transfer& x, double share) {
    if (share == x.segment_share) return;
    close_segment(x);
    x.segment_start = updated_;
    x.segment_share = share;
  }

  void close_segment(const Transfer& x) {
    if (timeline_ == nullptr || x.segment_share == 0.0 || !(updated_ > x.segment_start)) return;
    timeline_->push_back({x.job, x.resource, x.segment_start, updated_, x.segment_share});
  }

  Transfers* transfers_;
  Heap<Track> sharing_;
  Heap<Track> capped_;
  std::set<Rank> open_;    // transfers below their cap
  std::set<Rank> closed_;  // transfers at their cap
  std::vector<std::int32_t> moved_;
  std::span<const double> capacity_of_;
  ExactSum weight_;
  ExactSum capped_share_;
  double clock_ = 0.0;
  double updated_ = 0.0;
  double level_ = 1.0;  // capacity left to the sharing transfers
  double next_end_ = never;
  std::int32_t next_job_ = 0;
  std::int32_t next_item_ = 0;
  bool caps_;
  std::vector<Segment>* timeline_;
};

}  // namespace penstock
