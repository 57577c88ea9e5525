// Start-time fair queueing over groups (Goyal et al. 1997; SFQ(D), Jin et al. 2004): whose batch is
// served next, while each group's own scheduler says which.
//
// A group's start tag is the virtual time at which it may begin: its finish tag, and at least the
// virtual time at which it became backlogged. The ready group with the least start tag is served;
// its finish tag is then start + cost / weight, and the virtual time its start. Backlogged groups
// are so served in proportion to their weights, within one batch each, whatever the batches cost.
// A group that has requests and is not ready (twins asleep) does not save up: it begins at the
// virtual time like one that just came.

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
  static constexpr std::uint64_t CALL = 4096;

  FairQueue(Settings settings, Make make) : settings_(std::move(settings)), make_(make) {}

  void add(Request& request) override {
    request.number = ++added_;
    Group& group = group_of(request.group);
    if (group.waiting == 0) {
      group.start = std::max(virtual_time_, group.finish);
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

  Time ready_at(Time now) const override {
    Time first = NEVER;
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
    return all;
  }

  // From its next batch on; a group that nobody weighed has weight 1.
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
    }
  }

  // Groups that it has in memory: those backlogged, and others for a while.
  std::size_t groups() const { return groups_.size(); }

 private:
  struct Group {
    std::unique_ptr<Scheduler> scheduler;
    std::size_t waiting = 0;
    double weight = 1.0;
    double start = 0.0;
    double finish = 0.0;
  };

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
      return entry.second.waiting == 0 && entry.second.finish <= virtual_time_;
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * groups_.size());
    last_ = nullptr;
  }

  // Behind those with the same start tag.
  void line_up(Group& group) {
    const auto later = std::upper_bound(
        backlogged_.begin(), backlogged_.end(), group.start,
        [](double start, const Group* other) { return start < other->start; });
    backlogged_.insert(later, &group);
  }

  void charge(std::size_t position, const Batch& batch) {
    Group& group = *backlogged_[position];
    const std::uint64_t cost = CALL + batch.bytes();
    virtual_time_ = std::max(virtual_time_, group.start);
    group.finish = virtual_time_ + static_cast<double>(cost) / group.weight;
    latest_finish_ = std::max(latest_finish_, group.finish);
    group.start = group.finish;
    group.waiting -= batch.size();
    size_ -= batch.size();
    if (backlogged_.size() > 1 || group.waiting == 0) {
      backlogged_.erase(backlogged_.begin() + static_cast<std::ptrdiff_t>(position));
      if (group.waiting > 0) line_up(group);
    }
    // A busy period ends: everybody begins anew, together.
    if (size_ == 0) virtual_time_ = latest_finish_;
  }

  Settings settings_;
  Make make_;
  std::unordered_map<std::uint64_t, Group> groups_;
  std::unordered_map<std::uint64_t, double> weights_;
  std::vector<Group*> backlogged_;  // by start tag
  Group* last_ = nullptr;           // of the request before, most often also of the next
  std::uint64_t last_id_ = 0;
  std::size_t sweep_at_ = 64;
  std::size_t size_ = 0;
  std::uint64_t added_ = 0;
  double virtual_time_ = 0.0;
  double latest_finish_ = 0.0;
};

}  // namespace penstock
