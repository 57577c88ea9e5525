// twins, twins-busy, twins-priority: Server Time WindowS (Bez et al. 2017): at any time an I/O node
// goes to one storage server, and different I/O nodes to different ones.
//
// Settings: `window`, nanoseconds for one server; `servers`; `io_node`, this I/O node's number;
// `aggregation`. A request's queue is (server + io_node) % servers, which is the translation that
// makes different I/O nodes serve different servers in the same window, provided that their clocks
// agree. Within a queue: order of arrival, with contiguous requests taken along.
//
// twins: as the prose has it (thesis, 3.4), and AGIOS does it: queue (now / window) % servers is
// served, and if it is empty the I/O node waits for the window of the next one that is not.
// twins-busy: the same, but instead of waiting it serves the queue whose window comes next.
// twins-priority: Algorithm 1: one list sorted by (arrived / window) * servers + queue, from its
// front; never idle. As printed it leaves out the translation and inserts nothing at the tail; here
// both are added.
//
// None starves a request: a window comes round every window * servers, and in it the oldest of its
// queue goes first; in Algorithm 1 only requests of the same window or before go ahead. A queue
// that gets more than its windows can serve grows, as with any scheduler.

#pragma once

#include <algorithm>
#include <map>

#include "arrivals.hpp"

namespace penstock {

inline std::uint32_t twins_queue(const Settings& settings, const Request& request) {
  return static_cast<std::uint32_t>((std::uint64_t{request.server} + settings.io_node) %
                                    settings.servers);
}

enum class WhenEmpty { sleep, next };

template <WhenEmpty when_empty>
class Twins final : public Scheduler {
 public:
  explicit Twins(const Settings& settings) : settings_(settings), queues_(settings.servers) {}

  void add(Request& request) override {
    queues_[twins_queue(settings_, request)].add(request);
    ++size_;
  }

  Batch take(Time now) override {
    if (size_ == 0) return {};
    const std::uint64_t window = now / settings_.window;
    const std::uint64_t ahead = windows_ahead(window);
    if (ahead > 0 && when_empty == WhenEmpty::sleep) return {};
    Batch batch = queues_[(window + ahead) % queues_.size()].take(settings_.aggregation);
    size_ -= batch.size();
    return batch;
  }

  Time ready_at(Time now) const override {
    if (size_ == 0) return never;
    if (when_empty == WhenEmpty::next) return now;
    const std::uint64_t window = now / settings_.window;
    const std::uint64_t ahead = windows_ahead(window);
    return ahead == 0 ? now : (window + ahead) * settings_.window;
  }

  std::size_t size() const override { return size_; }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    for (Arrivals& queue : queues_) queue.drain_into(all);
    std::sort(all.begin(), all.end(), ByNumber{});
    size_ = 0;
    return all;
  }

 private:
  // How many windows until one whose queue is not empty; there is one.
  std::uint64_t windows_ahead(std::uint64_t window) const {
    std::uint64_t ahead = 0;
    while (queues_[(window + ahead) % queues_.size()].empty()) ++ahead;
    return ahead;
  }

  Settings settings_;
  std::vector<Arrivals> queues_;
  std::size_t size_ = 0;
};

class TwinsPriority final : public Scheduler {
 public:
  explicit TwinsPriority(const Settings& settings) : settings_(settings) {}

  void add(Request& request) override {
    const std::uint64_t priority =
        request.arrived / settings_.window * settings_.servers + twins_queue(settings_, request);
    by_priority_[priority].add(request);
    ++size_;
  }

  Batch take(Time) override {
    if (size_ == 0) return {};
    const auto first = by_priority_.begin();
    Batch batch = first->second.take(settings_.aggregation);
    if (first->second.empty()) by_priority_.erase(first);
    size_ -= batch.size();
    return batch;
  }

  Time ready_at(Time now) const override { return size_ == 0 ? never : now; }
  std::size_t size() const override { return size_; }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    for (auto& entry : by_priority_) entry.second.drain_into(all);
    std::sort(all.begin(), all.end(), ByNumber{});
    by_priority_.clear();
    size_ = 0;
    return all;
  }

 private:
  Settings settings_;
  // Requests of one priority, which the list of Algorithm 1 has side by side: batches are of these.
  std::map<std::uint64_t, Arrivals> by_priority_;
  std::size_t size_ = 0;
};

}  // namespace penstock
