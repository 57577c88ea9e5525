// mlf: multilevel feedback, as hbrr with quanta that grow.
//
// The idea: a file that used its quantum up and has more gets twice as much in the next round, so
// that short ones are soon done and long ones lose little by changing files. Settings: `quantum`,
// bytes of the first round; `aggregation`. It grows to 64 quanta at most, and is forgotten when the
// file has nothing queued. After the MLF of AGIOS (Boito et al. 2016), there with requests instead
// of files on the levels. Starves no request, as hbrr.

#pragma once

#include "hbrr.hpp"

namespace penstock {

class Mlf final : public Hbrr {
 public:
  static constexpr std::uint64_t levels = 6;

  using Hbrr::Hbrr;

 private:
  std::uint64_t next_quantum(std::uint64_t last) const override {
    return std::min(2 * last, quantum_ << levels);
  }
};

}  // namespace penstock
