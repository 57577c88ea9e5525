// Python's door to the knapsack.

#include <nanobind/nanobind.h>

#include <stdexcept>

#include "arrays.hpp"
#include "knapsack.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

void check(std::span<const std::int64_t> starts, std::span<const std::int32_t> weights,
           std::span<const double> values) {
  const bool whole = !starts.empty() && starts.front() == 0 &&
                     starts.back() == static_cast<std::int64_t>(weights.size()) &&
                     weights.size() == values.size();
  if (!whole) throw std::invalid_argument("the arrays do not fit together");
  for (std::size_t c = 0; c + 1 < starts.size(); ++c) {
    if (starts[c + 1] < starts[c]) throw std::invalid_argument("offsets must rise");
    if (starts[c + 1] - starts[c] > static_cast<std::int64_t>(Knapsack::most_items)) {
      throw std::invalid_argument("a class has more than 255 items");
    }
  }
  for (const std::int32_t weight : weights) {
    if (weight < 0) throw std::invalid_argument("a weight is negative");
  }
}

bool solve(In<std::int64_t> offsets, In<std::int32_t> weights, In<double> values,
           std::int32_t capacity, Out<std::int32_t> chosen) {
  check(view(offsets), view(weights), view(values));
  if (capacity < 0 || chosen.size() + 1 != offsets.size()) {
    throw std::invalid_argument("a capacity below zero, or not a choice a class");
  }
  nb::gil_scoped_release unlocked;
  return Knapsack(view(offsets), view(weights), view(values)).solve(capacity, view(chosen));
}

// `members` holds `sets` sets of classes, one after the other, and `out` a row of totals each.
void totals(In<std::int64_t> offsets, In<std::int32_t> weights, In<double> values,
            In<std::int64_t> members, std::int64_t sets, Out<double> out) {
  check(view(offsets), view(weights), view(values));
  const auto classes = static_cast<std::int64_t>(offsets.size()) - 1;
  for (const std::int64_t c : view(members)) {
    if (c < 0 || c >= classes) throw std::invalid_argument("a member is no class");
  }
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(sets, 0));
  if (count == 0 || members.size() % count != 0 || out.size() % count != 0 || out.size() == 0) {
    throw std::invalid_argument("the sets and their totals do not fit together");
  }
  const std::size_t size = members.size() / count;
  const std::size_t width = out.size() / count;
  nb::gil_scoped_release unlocked;
  Knapsack knapsack(view(offsets), view(weights), view(values));
  for (std::size_t s = 0; s < count; ++s) {
    knapsack.totals(view(members).subspan(s * size, size), view(out).subspan(s * width, width));
  }
}

}  // namespace
}  // namespace penstock

NB_MODULE(_knapsack, m) {
  m.doc() = "The multiple-choice knapsack; use it through penstock.policies._support.knapsack.";
  m.def("solve", &penstock::solve, "offsets"_a, "weights"_a, "values"_a, "capacity"_a, "chosen"_a);
  m.def("totals", &penstock::totals, "offsets"_a, "weights"_a, "values"_a, "members"_a, "sets"_a,
        "totals"_a);
}
