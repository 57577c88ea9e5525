#pragma once

namespace penstock {

// A running sum that does not drift: the pair (high, low) carries about 106 bits, so adding and
// later removing the same weight leaves exactly what was there before. Without it a job left alone
// after a heavier one would get a share of 1 +- 1e-10 instead of 1.
class ExactSum {
 public:
  void add(double x) {
    const double sum = high_ + x;
    const double back = sum - high_;
    const double error = (high_ - (sum - back)) + (x - back);
    const double low = low_ + error;
    high_ = sum + low;
    low_ = low - (high_ - sum);
  }

  [[nodiscard]] double value() const { return high_; }

  [[nodiscard]] double taken_from(double total) const {
    ExactSum rest;
    rest.add(total);
    rest.add(-high_);
    rest.add(-low_);
    return rest.value();
  }

  [[nodiscard]] double with(double x) const {
    ExactSum more = *this;
    more.add(x);
    return more.value();
  }

  [[nodiscard]] ExactSum minus(double x) const {
    ExactSum less = *this;
    less.add(-x);
    return less;
  }

  void reset() { high_ = low_ = 0.0; }

 private:
  double high_ = 0.0;
  double low_ = 0.0;
};

}  // namespace penstock
