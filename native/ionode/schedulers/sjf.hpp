// sjf: shortest job first: the file that has the fewest bytes waiting.
//
// The idea: what is soon done goes first, which makes the mean waiting time short; after the SJF of
// AGIOS (Boito et al. 2016). A file's queue (one per kind) is swept by offset and aggregated.
// Settings: `aggregation`. By itself it starves large files for as long as small ones keep coming;
// therefore a request that has waited for a second is served next, with those that continue it.

#pragma once

#include "ranked_files.hpp"

namespace penstock {

class Sjf final : public Scheduler {
 public:
  static constexpr Time longest_wait = 1'000'000'000;

  explicit Sjf(const Settings& settings) : aggregation_(settings.aggregation) {}

  void add(Request& request) override {
    waiting_.insert(&request);
    files_.add(request, waiting_bytes);
  }

  Batch take(Time now) override {
    if (waiting_.empty()) return {};
    Request& oldest = **waiting_.begin();
    const bool overdue = now >= longest_wait && oldest.arrived <= now - longest_wait;
    RankedFile& file = overdue ? files_.of(oldest) : files_.first();
    Batch batch = files_.take(
        file,
        [&](FileQueue& queue) {
          return overdue ? queue.take_from(oldest, aggregation_) : queue.take(aggregation_);
        },
        waiting_bytes);
    for (Request* request : batch) waiting_.erase(request);
    return batch;
  }

  Time ready_at(Time now) const override { return waiting_.empty() ? never : now; }
  std::size_t size() const override { return waiting_.size(); }

  std::vector<Request*> drain() override {
    waiting_.clear();
    return files_.drain();
  }

 private:
  static std::uint64_t waiting_bytes(const RankedFile& file) { return file.queue.bytes(); }

  std::uint64_t aggregation_;
  std::set<Request*, ByNumber> waiting_;
  RankedFiles files_;
};

}  // namespace penstock
