// time-order: in the order of arrival, and what is contiguous goes along.
//
// The idea: the oldest request is served, in one call with all queued requests of the same file and
// kind that continue it, before and after. Settings: `aggregation`, bytes of a call at most.
// Logarithmic in the queue's length. Aggregation as in AGIOS (Boito et al. 2016), whose TO-agg this
// is. Starves no request: the oldest is always served.

#pragma once

#include "arrivals.hpp"

namespace penstock {

class TimeOrder final : public Scheduler {
 public:
  explicit TimeOrder(const Settings& settings) : aggregation_(settings.aggregation) {}

  void add(Request& request) override { arrivals_.add(request); }
  Batch take(Time) override { return arrivals_.take(aggregation_); }
  Time ready_at(Time now) const override { return arrivals_.empty() ? never : now; }
  std::size_t size() const override { return arrivals_.size(); }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    arrivals_.drain_into(all);
    return all;
  }

 private:
  std::uint64_t aggregation_;
  Arrivals arrivals_;
};

}  // namespace penstock
