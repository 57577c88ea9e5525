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
      : offsets_(offsets), weights_(weights), values_(values) {}

  // Fills `chosen` with the item of each class (counted within it); false if nothing fits.
  bool solve(std::int32_t capacity, std::span<std::int32_t> chosen) {
    const std::size_t classes = offsets_.size() - 1;
    const std::size_t width = static_cast<std::size_t>(capacity) + 1;
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    std::vector<double> best(width, nothing);
    std::vector<double> next(width);
    std::vector<std::uint8_t> choice(classes * width);
    std::vector<std::vector<std::int32_t>> kept(classes);
    best[0] = 0.0;
    std::size_t reach = 0;  // no weight above this has been reached yet
    for (std::size_t c = 0; c < classes; ++c) {
      kept[c] = useful(c);
      if (kept[c].empty()) return false;
      std::fill(next.begin(), next.end(), nothing);
      std::uint8_t* const picks = choice.data() + c * width;
      std::size_t reached = 0;
      for (std::size_t k = 0; k < kept[c].size(); ++k) {
        const auto item = static_cast<std::size_t>(offsets_[c]) + static_cast<std::size_t>(kept[c][k]);
        const auto weight = static_cast<std::size_t>(weights_[item]);
        const double value = values_[item];
        if (weight >= width) continue;
        const std::size_t stop = std::min(reach, width - 1 - weight);
        for (std::size_t w = 0; w <= stop; ++w) {
          const double total = best[w] + value;
          if (total > next[w + weight]) {
            next[w + weight] = total;
            picks[w + weight] = static_cast<std::uint8_t>(k);
          }
        }
        reached = std::max(reached, stop + weight);
      }
      reach = reached;
      best.swap(next);
    }
    std::size_t at = 0;
    for (std::size_t w = 1; w < width; ++w) {
      if (best[w] > best[at]) at = w;
    }
    if (best[at] == nothing) return false;
    for (std::size_t c = classes; c-- > 0;) {
      const std::int32_t item = kept[c][choice[c * width + at]];
      chosen[c] = item;
      at -= static_cast<std::size_t>(weights_[static_cast<std::size_t>(offsets_[c] + item)]);
    }
    return true;
  }

 private:
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
    double value = -std::numeric_limits<double>::infinity();
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
};

}  // namespace penstock
