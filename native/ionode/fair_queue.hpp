// Shares of groups: decides which group is served next; the group's own scheduler decides which of
// its batches. The ready group with the least tag is next. The tag depends on what is shared. What
// makes a group is a number of each request: its job, or its user (user_queue.hpp).
//
// Bytes: start-time fair queueing (Goyal et al. 1997; SFQ(D), Jin et al. 2004). A group's start tag
// is the virtual time at which it may begin: its finish tag, and at least the virtual time at which
// it became backlogged. The ready group with the least start tag is served; its finish tag is then
// start + cost / weight, and the virtual time its start. Backlogged groups are thus served in
// proportion to their weights, within one batch each, whatever the batches cost. A group that has
// requests and is not ready (twins asleep) does not save up: it begins at the virtual time like one
// that just came.
//
// Concurrency (IO-SETS, VII-C1): the tag is batches in service / weight. Each backlogged group has
// calls in service in proportion to its weight, and storage that serves all calls equally serves
// the groups in that proportion.

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "scheduler.hpp"

namespace penstock {

class FairQueue final : public Scheduler {
 public:
  using Make = std::function<std::unique_ptr<Scheduler>(const Settings&)>;
  using Key = std::uint64_t Request::*;
  using Weights = std::unordered_map<std::uint64_t, double>;
  // The cost of a call, on top of its bytes; syncs have no bytes.
  static constexpr std::uint64_t call_cost = 4096;

  // Weights outlive the groups, which are forgotten when they are idle; those without have 1.
  FairQueue(Settings settings, Make make, Key key, const Weights& weights)
      : settings_(std::move(settings)), make_(std::move(make)), key_(key), weights_(weights) {}

  void add(Request& request) override {
    Group& group = group_of(request.*key_);
    group.last_request = request.arrived;
    if (group.waiting == 0) {
      group.waits_since = request.arrived;
      if (group.busy_period != busy_period_) group.finish = 0.0;
      group.busy_period = busy_period_;
      group.tag = concurrency() ? group.load() : std::max(virtual_time_, group.finish);
      line_up(group);
    }
    group.scheduler->add(request);
    ++group.waiting;
    ++size_;
    count(group);
  }

  // How a group stands.
  struct Standing {
    double weight;
    std::uint32_t in_service;  // batches
    bool waits;
    Time last_request;  // when it arrived
  };

  Batch take(Time now) override {
    return take_first([now](Scheduler& of_group, const Standing&) { return of_group.take(now); });
  }

  // What the first group with something for `take(its scheduler, how it stands)` gives.
  template <class Take>
  Batch take_first(const Take& take) {
    for (std::size_t k = 0; k < backlogged_.size(); ++k) {
      Batch batch = take(*backlogged_[k]->scheduler, backlogged_[k]->standing());
      if (batch.empty()) continue;
      charge(k, batch);
      return batch;
    }
    return {};
  }

  // Of groups that have nothing in service, for a place beyond those there are.
  Batch take_of_unserved(Time now) {
    return take_first([now](Scheduler& of_group, const Standing& stands) {
      return stands.in_service > 0 ? Batch() : of_group.take(now);
    });
  }

  // Since when one of those groups waits, or never.
  Time unserved_since() const {
    Time since = never;
    for (const Group* group : backlogged_) {
      if (group->in_service == 0) since = std::min(since, group->waits_since);
    }
    return since;
  }

  // A batch that `take` returned is no longer in service.
  void served(std::uint64_t id) {
    const auto entry = groups_.find(id);
    if (entry == groups_.end() || entry->second.in_service == 0) return;
    --entry->second.in_service;
    count(entry->second);
    if (concurrency()) reload(entry->second);
  }

  // More than one of a batch that `take` returned is in service by itself.
  void also_in_service(std::uint64_t id, std::uint32_t batches) {
    if (batches == 0) return;
    Group& group = group_of(id);
    group.in_service += batches;
    count(group);
    if (concurrency()) reload(group);
  }

  // What was taken for the group costs more, or less, than it was charged for.
  void charge(std::uint64_t id, std::uint64_t bytes) { adjust(id, static_cast<double>(bytes)); }
  void refund(std::uint64_t id, std::uint64_t bytes) { adjust(id, -static_cast<double>(bytes)); }

  // The weight of a group, and the least of those with requests since a time.
  double weight(std::uint64_t id) const {
    const auto entry = weights_.find(id);
    return entry == weights_.end() ? 1.0 : entry->second;
  }
  double least_weight(Time since) const {
    double least = std::numeric_limits<double>::max();
    for (const auto& [id, group] : groups_) {
      if (group.last_request >= since) least = std::min(least, group.weight);
    }
    return least;
  }

  // The largest weight of the groups that have requests, waiting or in service; without any, 1.
  double heaviest() const {
    const auto entry = std::find_if(active_.rbegin(), active_.rend(),
                                    [](const auto& of_weight) { return of_weight.second > 0; });
    return entry == active_.rend() ? 1.0 : entry->first;
  }

  // The scheduler of a group in memory, or null.
  Scheduler* scheduler_of(std::uint64_t id) const {
    const auto entry = groups_.find(id);
    return entry == groups_.end() ? nullptr : entry->second.scheduler.get();
  }
  // Calls `each(standing, scheduler)` for the groups that have requests, waiting or in service, or
  // had some since a time.
  template <class Each>
  void for_each_active(Time since, const Each& each) const {
    for (const auto& [id, group] : groups_) {
      if (group.active() || group.last_request >= since) each(group.standing(), *group.scheduler);
    }
  }
  // Calls `each(id, scheduler)` for the groups in memory.
  template <class Each>
  void for_each(const Each& each) const {
    for (const auto& [id, group] : groups_) each(id, *group.scheduler);
  }

  // Count the batches that another queue has in service: for a switch of schedulers.
  void take_over(const FairQueue& before) {
    for (const auto& [id, group] : before.groups_) {
      if (group.in_service == 0) continue;
      Group& here = group_of(id);
      here.in_service = group.in_service;
      count(here);
    }
  }

  // Batches in service of a group.
  std::uint32_t in_service(std::uint64_t id) const {
    const auto entry = groups_.find(id);
    return entry == groups_.end() ? 0 : entry->second.in_service;
  }

  Time ready_at(Time now) const override {
    Time first = never;
    for (const Group* group : backlogged_) {
      first = std::min(first, group->scheduler->ready_at(now));
      if (first <= now) break;
    }
    return first;
  }

  std::size_t size() const override { return size_; }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    for (Group* group : backlogged_) {
      const auto of_group = group->scheduler->drain();
      all.insert(all.end(), of_group.begin(), of_group.end());
      group->waiting = 0;
      count(*group);
    }
    std::sort(all.begin(), all.end(),
              [](const Request* a, const Request* b) { return a->number < b->number; });
    backlogged_.clear();
    size_ = 0;
    begin_busy_period();
    return all;
  }

  // A group's weight has changed: it counts from the next batch on.
  void reweigh(std::uint64_t id) {
    const auto entry = groups_.find(id);
    if (entry == groups_.end()) return;
    entry->second.weight = weight(id);
    count(entry->second);
    if (concurrency()) reload(entry->second);
  }

  // Groups in memory: those backlogged or in service, and idle ones until the next sweep.
  std::size_t groups() const { return groups_.size(); }

 private:
  struct Group {
    std::unique_ptr<Scheduler> scheduler;
    std::size_t waiting = 0;
    double weight = 1.0;
    double tag = 0.0;
    double finish = 0.0;
    std::uint64_t busy_period = 0;  // in which its finish tag counts
    std::uint32_t in_service = 0;   // batches
    Time last_request = 0;          // when it arrived
    Time waits_since = 0;           // has had requests
    double counted = 0.0;           // its weight among the active ones; 0: it is idle

    bool active() const { return waiting > 0 || in_service > 0; }
    double load() const { return in_service / weight; }
    Standing standing() const { return {weight, in_service, waiting > 0, last_request}; }
  };

  bool concurrency() const { return settings_.shares == Shares::concurrency; }

  Group& group_of(std::uint64_t id) {
    if (last_ != nullptr && last_id_ == id) return *last_;
    auto entry = groups_.find(id);
    if (entry == groups_.end()) {
      if (groups_.size() >= sweep_at_) sweep();
      entry = groups_.emplace(id, Group{}).first;
      entry->second.scheduler = make_(settings_);
      entry->second.weight = weight(id);
    }
    last_id_ = id;
    last_ = &entry->second;
    return *last_;
  }

  // A group with nothing queued whose finish tag has passed is equal to a new one. Such
  // groups are erased whenever the number of groups has doubled, at constant amortized cost.
  void sweep() {
    std::erase_if(groups_, [this](const auto& entry) {
      const Group& group = entry.second;
      const bool passed = group.busy_period != busy_period_ || group.finish <= virtual_time_;
      return group.waiting == 0 && group.in_service == 0 && passed;
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * groups_.size());
    last_ = nullptr;
  }

  // Whether it is active, or its weight, may have changed. Weights come back: they stay known
  // without a count, as long as they are few.
  void count(Group& group) {
    constexpr std::size_t few = 16;
    const double weight = group.active() ? group.weight : 0.0;
    if (weight == group.counted) return;
    if (group.counted > 0.0) {
      const auto before = active_.find(group.counted);
      if (--before->second == 0 && active_.size() > few) active_.erase(before);
    }
    if (weight > 0.0) ++active_[weight];
    group.counted = weight;
  }

  // Insert the group behind those with the same tag, which have waited longer.
  void line_up(Group& group) {
    const auto later =
        std::upper_bound(backlogged_.begin(), backlogged_.end(), group.tag,
                         [](double tag, const Group* other) { return tag < other->tag; });
    backlogged_.insert(later, &group);
  }

  void adjust(std::uint64_t id, double bytes) {
    const auto entry = groups_.find(id);
    if (entry == groups_.end() || concurrency()) return;
    Group& group = entry->second;
    if (group.busy_period != busy_period_) return;
    group.finish = std::max(group.finish + bytes / group.weight, virtual_time_);
    if (group.waiting == 0) return;
    group.tag = group.finish;
    if (backlogged_.size() == 1) return;
    backlogged_.erase(std::find(backlogged_.begin(), backlogged_.end(), &group));
    line_up(group);
  }

  // Its batches in service, or its weight, have changed.
  void reload(Group& group) {
    group.tag = group.load();
    if (group.waiting == 0 || backlogged_.size() == 1) return;
    backlogged_.erase(std::find(backlogged_.begin(), backlogged_.end(), &group));
    line_up(group);
  }

  void charge(std::size_t position, const Batch& batch) {
    Group& group = *backlogged_[position];
    ++group.in_service;
    if (concurrency()) {
      group.tag = group.load();
    } else {
      const std::uint64_t cost = call_cost + batch.bytes();
      virtual_time_ = std::max(virtual_time_, group.tag);
      group.finish = virtual_time_ + static_cast<double>(cost) / group.weight;
      group.tag = group.finish;
    }
    group.waiting -= batch.size();
    count(group);
    size_ -= batch.size();
    if (backlogged_.size() > 1 || group.waiting == 0) {
      backlogged_.erase(backlogged_.begin() + static_cast<std::ptrdiff_t>(position));
      if (group.waiting > 0) line_up(group);
    }
    if (size_ == 0) begin_busy_period();
  }

  // The queue is empty: finish tags of the last busy period no longer count, and virtual time
  // starts at zero again, where doubles are exact.
  void begin_busy_period() {
    ++busy_period_;
    virtual_time_ = 0.0;
  }

  Settings settings_;
  Make make_;
  Key key_;
  const Weights& weights_;
  std::unordered_map<std::uint64_t, Group> groups_;
  std::map<double, std::size_t> active_;  // how many groups of a weight
  std::vector<Group*> backlogged_;        // by tag
  Group* last_ = nullptr;                 // of the request before, most often also of the next
  std::uint64_t last_id_ = 0;
  std::size_t sweep_at_ = 64;
  std::size_t size_ = 0;
  double virtual_time_ = 0.0;
  std::uint64_t busy_period_ = 0;
};

}  // namespace penstock
