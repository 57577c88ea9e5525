#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace penstock {

// The multiple-choice knapsack: exactly one item of each class, total weight at most `capacity`,
// the highest total value, and of equal values the lowest weight.
//
// Dynamic programming over the exact weight used. An item that weighs no less and is worth no more
// than another of its class is never needed and dropped first. Choices are kept a byte each, so a
// class may have at most 255 items left.
class Knapsack {
 public:
  static constexpr std::size_t most_items = 255;

  Knapsack(std::span<const std::int64_t> offsets, std::span<const std::int32_t> weights,
           std::span<const double> values)
      : offsets_(offsets), weights_(weights), values_(values), kept_(offsets.size() - 1) {
    for (std::size_t c = 0; c < kept_.size(); ++c) kept_[c] = useful(c);
  }

  // Fills `chosen` with the item of each class (counted within it); false if nothing fits.
  bool solve(std::int32_t capacity, std::span<std::int32_t> chosen) {
    const std::size_t width = static_cast<std::size_t>(capacity) + 1;
    std::vector<std::uint8_t> choice(kept_.size() * width);
    begin(width);
    for (std::size_t c = 0; c < kept_.size(); ++c) {
      std::uint8_t* const picks = choice.data() + c * width;
      add(c, [picks](std::size_t weight, std::size_t k) {
        picks[weight] = static_cast<std::uint8_t>(k);
      });
    }
    std::size_t at = 0;
    for (std::size_t w = 1; w < width; ++w) {
      if (best_[w] > best_[at]) at = w;
    }
    if (best_[at] == nothing) return false;
    for (std::size_t c = kept_.size(); c-- > 0;) {
      const std::int32_t item = kept_[c][choice[c * width + at]];
      chosen[c] = item;
      at -= static_cast<std::size_t>(weights_[static_cast<std::size_t>(offsets_[c] + item)]);
    }
    return true;
  }

  // Fills `totals` with the highest total value of the classes `members` at every capacity from 0
  // on; minus infinity where even the lightest items are too heavy. A class may be there twice.
  void totals(std::span<const std::int64_t> members, std::span<double> totals) {
    begin(totals.size());
    for (const std::int64_t c : members) {
      add(static_cast<std::size_t>(c), [](std::size_t, std::size_t) {});
    }
    double most = nothing;
    for (std::size_t w = 0; w < totals.size(); ++w) {
      most = std::max(most, best_[w]);
      totals[w] = most;
    }
  }

 private:
  static constexpr double nothing = -std::numeric_limits<double>::infinity();

  void begin(std::size_t width) {
    best_.assign(width, nothing);
    next_.resize(width);
    best_[0] = 0.0;
    reach_ = 0;
  }

  // Puts a class into the program; calls took(weight, k) where the k-th useful item is now the
  // best.
  template <class Took>
  void add(std::size_t c, Took took) {
    const std::size_t width = best_.size();
    std::fill(next_.begin(), next_.end(), nothing);
    std::size_t reached = 0;
    for (std::size_t k = 0; k < kept_[c].size(); ++k) {
      const auto item = static_cast<std::size_t>(offsets_[c] + kept_[c][k]);
      const auto weight = static_cast<std::size_t>(weights_[item]);
      const double value = values_[item];
      if (weight >= width) continue;
      const std::size_t stop = std::min(reach_, width - 1 - weight);
      for (std::size_t w = 0; w <= stop; ++w) {
        const double total = best_[w] + value;
        if (total > next_[w + weight]) {
          next_[w + weight] = total;
          took(w + weight, k);
        }
      }
      reached = std::max(reached, stop + weight);
    }
    reach_ = reached;
    best_.swap(next_);
  }

  // The items of a class that no other dominates, by rising weight (and so by rising value).
  std::vector<std::int32_t> useful(std::size_t c) const {
    const auto first = static_cast<std::size_t>(offsets_[c]);
    std::vector<std::int32_t> order(static_cast<std::size_t>(offsets_[c + 1] - offsets_[c]));
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int32_t>(k);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const auto x = first + static_cast<std::size_t>(a);
      const auto y = first + static_cast<std::size_t>(b);
      return weights_[x] != weights_[y] ? weights_[x] < weights_[y] : values_[x] > values_[y];
    });
    std::vector<std::int32_t> kept;
    double value = nothing;
    for (const std::int32_t k : order) {
      const double v = values_[first + static_cast<std::size_t>(k)];
      if (v > value) {
        kept.push_back(k);
        value = v;
      }
    }
    return kept;
  }

  std::span<const std::int64_t> offsets_;
  std::span<const std::int32_t> weights_;
  std::span<const double> values_;
  std::vector<std::vector<std::int32_t>> kept_;
  // The best value at every exact weight, before and after the class that is being added; no
  // weight above `reach_` has been reached yet.
  std::vector<double> best_;
  std::vector<double> next_;
  std::size_t reach_ = 0;
};

}  // namespace penstock
