// What all clients need and none may take alone: descriptors, memory, places in tables. An origin
// (a user of this host, or another host) may have as much as is left. Alone it thus gets half, n of
// them get 1/(n+1) each, and whoever comes next finds as much (dynamic thresholds: Choudhury and
// Hahne, 1998).

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "peer.hpp"

namespace penstock {

class Quota : public std::enable_shared_from_this<Quota> {
 public:
  explicit Quota(std::uint64_t total) : total_(total) {}

  // What was taken; given back with its owner.
  class Share {
   public:
    Share() = default;
    Share(std::shared_ptr<Quota> of, const Origin& origin, std::uint64_t amount)
        : of_(std::move(of)), origin_(origin), amount_(amount) {}
    Share(Share&& other) noexcept
        : of_(std::move(other.of_)), origin_(other.origin_), amount_(other.amount_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(origin_, other.origin_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() {
      if (of_ != nullptr) of_->give_back(origin_, amount_);
    }

    explicit operator bool() const { return of_ != nullptr; }
    const Origin& origin() const { return origin_; }

   private:
    std::shared_ptr<Quota> of_;
    Origin origin_;
    std::uint64_t amount_ = 0;
  };

  // Empty: the origin has its part. One that has nothing yet is never refused.
  Share take(const Origin& origin, std::uint64_t amount = 1) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t left = total_ - std::min(total_, taken_);
    auto& used = by_origin_[origin];
    if (used > 0 && used + amount > left) return {};
    used += amount;
    taken_ += amount;
    return {shared_from_this(), origin, amount};
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  void give_back(const Origin& origin, std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    taken_ -= amount;
    const auto entry = by_origin_.find(origin);
    entry->second -= amount;
    if (entry->second == 0) by_origin_.erase(entry);
  }

  mutable std::mutex mutex_;
  const std::uint64_t total_;
  std::uint64_t taken_ = 0;
  std::unordered_map<Origin, std::uint64_t> by_origin_;
};

}  // namespace penstock
