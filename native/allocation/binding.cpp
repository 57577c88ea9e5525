// Python's door to the knapsack.

#include <nanobind/nanobind.h>

#include <stdexcept>

#include "arrays.hpp"
#include "knapsack.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

bool solve(In<std::int64_t> offsets, In<std::int32_t> weights, In<double> values,
           std::int32_t capacity, Out<std::int32_t> chosen) {
  const auto starts = view(offsets);
  const bool whole = !starts.empty() && starts.front() == 0 &&
                     starts.back() == static_cast<std::int64_t>(weights.size()) &&
                     weights.size() == values.size() && chosen.size() + 1 == starts.size();
  if (!whole || capacity < 0) throw std::invalid_argument("the arrays do not fit together");
  for (std::size_t c = 0; c + 1 < starts.size(); ++c) {
    if (starts[c + 1] < starts[c]) throw std::invalid_argument("offsets must rise");
    if (starts[c + 1] - starts[c] > static_cast<std::int64_t>(Knapsack::most_items)) {
      throw std::invalid_argument("a class has more than 255 items");
    }
  }
  for (const std::int32_t weight : view(weights)) {
    if (weight < 0) throw std::invalid_argument("a weight is negative");
  }
  nb::gil_scoped_release unlocked;
  return Knapsack(starts, view(weights), view(values)).solve(capacity, view(chosen));
}

}  // namespace
}  // namespace penstock

NB_MODULE(_knapsack, m) {
  m.doc() = "The multiple-choice knapsack; use it through penstock.policies.allocation.knapsack.";
  m.def("solve", &penstock::solve, "offsets"_a, "weights"_a, "values"_a, "capacity"_a, "chosen"_a);
}
