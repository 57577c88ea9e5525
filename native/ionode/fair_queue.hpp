// Shares of groups: decides which group is served next; the group's own scheduler decides which of
// its batches. The ready group with the least tag is next. The tag depends on what is shared.
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
#include <stdexcept>
#include <unordered_map>

#include "scheduler.hpp"

namespace penstock {

class FairQueue final : public Scheduler {
 public:
  using Make = std::unique_ptr<Scheduler> (*)(const Settings&);
  // The cost of a call, on top of its bytes; syncs have no bytes.
  static constexpr std::uint64_t call_cost = 4096;

  FairQueue(Settings settings, Make make) : settings_(std::move(settings)), make_(make) {}

  void add(Request& request) override {
    request.number = ++added_;
    Group& group = group_of(request.group);
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
  }

  Batch take(Time now) override {
    for (std::size_t k = 0; k < backlogged_.size(); ++k) {
      Batch batch = backlogged_[k]->scheduler->take(now);
      if (batch.empty()) continue;
      charge(k, batch);
      return batch;
    }
    return {};
  }

  // Of groups that have nothing in service, for a place beyond those there are.
  Batch take_of_unserved(Time now) {
    for (std::size_t k = 0; k < backlogged_.size(); ++k) {
      if (backlogged_[k]->in_service > 0) continue;
      Batch batch = backlogged_[k]->scheduler->take(now);
      if (batch.empty()) continue;
      charge(k, batch);
      return batch;
    }
    return {};
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
    if (concurrency()) reload(entry->second);
  }

  // More than one of a batch that `take` returned is in service by itself.
  void also_in_service(std::uint64_t id, std::uint32_t batches) {
    if (batches == 0) return;
    group_of(id).in_service += batches;
    if (concurrency()) reload(group_of(id));
  }

  // What was taken for the group costs more, or less, than it was charged for.
  void charge(std::uint64_t id, std::uint64_t bytes) { adjust(id, static_cast<double>(bytes)); }
  void refund(std::uint64_t id, std::uint64_t bytes) { adjust(id, -static_cast<double>(bytes)); }

  // The group's weight as a multiple of the smallest of those with requests since a time, within
  // reason.
  double relative_weight(std::uint64_t id, Time since) const {
    constexpr double most = 16.0;
    const auto entry = groups_.find(id);
    if (entry == groups_.end()) return 1.0;
    double least = entry->second.weight;
    for (const auto& [other, group] : groups_) {
      if (group.last_request >= since) least = std::min(least, group.weight);
    }
    return std::min(entry->second.weight / least, most);
  }

  // Count the batches that another queue has in service: for a switch of schedulers.
  void take_over(const FairQueue& before) {
    for (const auto& [id, group] : before.groups_) {
      if (group.in_service > 0) group_of(id).in_service = group.in_service;
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
    }
    std::sort(all.begin(), all.end(),
              [](const Request* a, const Request* b) { return a->number < b->number; });
    backlogged_.clear();
    size_ = 0;
    begin_busy_period();
    return all;
  }

  // Set a group's weight, from the next batch on. The default, 1, needs no memory.
  void weigh(std::uint64_t group, double weight) {
    if (!(weight > 0) || weight > std::numeric_limits<double>::max()) {
      throw std::invalid_argument("a weight must be a number above zero");
    }
    if (weight == 1.0) {
      weights_.erase(group);
    } else {
      weights_[group] = weight;
    }
    if (const auto entry = groups_.find(group); entry != groups_.end()) {
      entry->second.weight = weight;
      if (concurrency()) reload(entry->second);
    }
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

    double load() const { return in_service / weight; }
  };

  bool concurrency() const { return settings_.shares == Shares::concurrency; }

  Group& group_of(std::uint64_t id) {
    if (last_ != nullptr && last_id_ == id) return *last_;
    auto entry = groups_.find(id);
    if (entry == groups_.end()) {
      if (groups_.size() >= sweep_at_) sweep();
      const auto weight = weights_.find(id);
      entry = groups_.emplace(id, Group{}).first;
      entry->second.scheduler = make_(settings_);
      if (weight != weights_.end()) entry->second.weight = weight->second;
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
  std::unordered_map<std::uint64_t, Group> groups_;
  std::unordered_map<std::uint64_t, double> weights_;
  std::vector<Group*> backlogged_;  // by tag
  Group* last_ = nullptr;           // of the request before, most often also of the next
  std::uint64_t last_id_ = 0;
  std::size_t sweep_at_ = 64;
  std::size_t size_ = 0;
  std::uint64_t added_ = 0;
  double virtual_time_ = 0.0;
  std::uint64_t busy_period_ = 0;
};

}  // namespace penstock
