// fifo: requests one by one, in the order of their arrival.
//
// The idea: nothing is reordered and nothing waits for anything; the baseline of IOFSL (Ohta et al.
// 2010) and the default. Settings: none. Constant time a request, and no memory taken once the ring
// has grown to the longest queue. Starves no request.

#pragma once

#include "../scheduler.hpp"

namespace penstock {

class Fifo final : public Scheduler {
 public:
  void add(Request& request) override {
    if (size_ == ring_.size()) grow();
    ring_[(first_ + size_) & (ring_.size() - 1)] = &request;
    ++size_;
  }

  Batch take(Time) override {
    if (size_ == 0) return {};
    Request& request = *ring_[first_];
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
    return Batch(request);
  }

  Time ready_at(Time now) const override { return size_ == 0 ? never : now; }
  std::size_t size() const override { return size_; }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    while (size_ > 0) all.push_back(take(0).front());
    return all;
  }

 private:
  void grow() {
    std::vector<Request*> wider(ring_.size() * 2);  // a power of two, so that a mask wraps around
    for (std::size_t k = 0; k < size_; ++k) wider[k] = ring_[(first_ + k) & (ring_.size() - 1)];
    ring_ = std::move(wider);
    first_ = 0;
  }

  std::vector<Request*> ring_ = std::vector<Request*>(64);
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace penstock
