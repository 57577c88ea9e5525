// Shares of groups: whose batch is served next, while each group's own scheduler says which. The
// ready group with the least tag is; what a tag is depends on what is shared.
//
// Bytes: start-time fair queueing (Goyal et al. 1997; SFQ(D), Jin et al. 2004). A group's start tag
// is the virtual time at which it may begin: its finish tag, and at least the virtual time at which
// it became backlogged. The ready group with the least start tag is served; its finish tag is then
// start + cost / weight, and the virtual time its start. Backlogged groups are so served in
// proportion to their weights, within one batch each, whatever the batches cost. A group that has
// requests and is not ready (twins asleep) does not save up: it begins at the virtual time like one
// that just came.
//
// Concurrency (IO-SETS, VII-C1): the tag is batches in service / weight. Of backlogged groups each
// has calls under way in proportion to its weight, and storage that serves calls alike serves
// groups so.

#pragma once

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "scheduler.hpp"

namespace penstock {

class FairQueue final : public Scheduler {
 public:
  using Make = std::unique_ptr<Scheduler> (*)(const Settings&);
  // What a batch costs on top of its bytes: a call is not free, and syncs have none.
  static constexpr std::uint64_t call_cost = 4096;

  FairQueue(Settings settings, Make make) : settings_(std::move(settings)), make_(make) {}

  void add(Request& request) override {
    request.number = ++added_;
    Group& group = group_of(request.group);
    if (group.waiting == 0) {
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

  // A batch that `take` gave is in service no more.
  void served(std::uint64_t id) {
    const auto found = groups_.find(id);
    if (found == groups_.end() || found->second.in_service == 0) return;
    --found->second.in_service;
    if (concurrency()) reload(found->second);
  }

  // What another queue gave and is still in service counts here: for a switch while requests are in
  // service.
  void take_over(const FairQueue& before) {
    for (const auto& [id, group] : before.groups_) {
      if (group.in_service > 0) group_of(id).in_service = group.in_service;
    }
  }

  // Batches in service of a group.
  std::uint32_t in_service(std::uint64_t id) const {
    const auto found = groups_.find(id);
    return found == groups_.end() ? 0 : found->second.in_service;
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
    begin_anew();
    return all;
  }

  // From the next batch on. A group that nobody weighed has weight 1; giving it forgets the group.
  void weigh(std::uint64_t group, double weight) {
    if (!(weight > 0) || weight > std::numeric_limits<double>::max()) {
      throw std::invalid_argument("a weight must be a number above zero");
    }
    if (weight == 1.0) {
      weights_.erase(group);
    } else {
      weights_[group] = weight;
    }
    if (const auto found = groups_.find(group); found != groups_.end()) {
      found->second.weight = weight;
      if (concurrency()) reload(found->second);
    }
  }

  // Groups that it has in memory: those backlogged or in service, and others for a while.
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

    double load() const { return in_service / weight; }
  };

  bool concurrency() const { return settings_.shares == Shares::concurrency; }

  Group& group_of(std::uint64_t id) {
    if (last_ != nullptr && last_id_ == id) return *last_;
    auto found = groups_.find(id);
    if (found == groups_.end()) {
      if (groups_.size() >= sweep_at_) sweep();
      const auto weight = weights_.find(id);
      found = groups_.emplace(id, Group{}).first;
      found->second.scheduler = make_(settings_);
      if (weight != weights_.end()) found->second.weight = weight->second;
    }
    last_id_ = id;
    last_ = &found->second;
    return *last_;
  }

  // A group with nothing queued whose finish tag has passed is as good as a new one. They are
  // looked for when groups have doubled, so that coming and going costs nothing.
  void sweep() {
    std::erase_if(groups_, [this](const auto& entry) {
      const Group& group = entry.second;
      const bool passed = group.busy_period != busy_period_ || group.finish <= virtual_time_;
      return group.waiting == 0 && group.in_service == 0 && passed;
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * groups_.size());
    last_ = nullptr;
  }

  // Behind those with the same tag, who have waited for longer.
  void line_up(Group& group) {
    const auto later =
        std::upper_bound(backlogged_.begin(), backlogged_.end(), group.tag,
                         [](double tag, const Group* other) { return tag < other->tag; });
    backlogged_.insert(later, &group);
  }

  // What it has in service, or its weight, has changed.
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
    if (size_ == 0) begin_anew();
  }

  // A busy period ends, and nobody owes anybody anything. Tags are small again, and so exact.
  void begin_anew() {
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
