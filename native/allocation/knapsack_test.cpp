// The knapsack against all combinations of small random instances; built under ASan, UBSan and
// TSan by tests/native.

#include <random>

#include "check.hpp"
#include "knapsack.hpp"

using namespace penstock;

namespace {

struct Instance {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> weights;
  std::vector<double> values;

  std::size_t classes() const { return offsets.size() - 1; }
};

Instance draw(std::mt19937& random) {
  Instance drawn;
  const auto classes = std::uniform_int_distribution<int>(0, 4)(random);
  for (int c = 0; c < classes; ++c) {
    const auto items = std::uniform_int_distribution<int>(0, 4)(random);
    for (int k = 0; k < items; ++k) {
      drawn.weights.push_back(std::uniform_int_distribution<std::int32_t>(0, 5)(random));
      drawn.values.push_back(std::uniform_int_distribution<int>(0, 6)(random));
    }
    drawn.offsets.push_back(static_cast<std::int64_t>(drawn.weights.size()));
  }
  return drawn;
}

struct Best {
  double value = -std::numeric_limits<double>::infinity();
  std::int32_t weight = 0;
};

// Tries every combination of the classes from c on.
void try_all(const Instance& of, std::size_t c, std::int32_t weight, double value,
             std::int32_t capacity, Best& best) {
  if (weight > capacity) return;
  if (c == of.classes()) {
    if (value > best.value || (value == best.value && weight < best.weight)) best = {value, weight};
    return;
  }
  for (auto i = static_cast<std::size_t>(of.offsets[c]);
       i < static_cast<std::size_t>(of.offsets[c + 1]); ++i) {
    try_all(of, c + 1, weight + of.weights[i], value + of.values[i], capacity, best);
  }
}

void best_of_all_combinations() {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const Instance of = draw(random);
    const auto capacity = std::uniform_int_distribution<std::int32_t>(0, 12)(random);
    Knapsack knapsack(of.offsets, of.weights, of.values);
    std::vector<std::int32_t> chosen(of.classes());
    std::vector<std::int64_t> members(of.classes());
    for (std::size_t c = 0; c < members.size(); ++c) members[c] = static_cast<std::int64_t>(c);
    std::vector<double> totals(static_cast<std::size_t>(capacity) + 1);
    // The buffers serve once more.
    knapsack.totals(members, totals);
    for (std::int32_t limit = 0; limit <= capacity; ++limit) {
      Best best;
      try_all(of, 0, 0, 0.0, limit, best);
      CHECK(totals[static_cast<std::size_t>(limit)] == best.value);
      const bool fits = knapsack.solve(limit, chosen);
      CHECK(fits == (best.value >= 0));
      if (!fits) continue;
      Best ours{0.0, 0};
      for (std::size_t c = 0; c < of.classes(); ++c) {
        const auto item = static_cast<std::size_t>(of.offsets[c] + chosen[c]);
        ours = {ours.value + of.values[item], ours.weight + of.weights[item]};
      }
      CHECK(ours.value == best.value);
      CHECK(ours.weight == best.weight);
    }
  }
}

}  // namespace

int main() {
  best_of_all_combinations();
  std::puts("knapsack: all hold");
}
