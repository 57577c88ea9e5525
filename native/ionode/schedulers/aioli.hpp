// aioli: after aIOLi (Lebre et al. 2006), in our reading of what AGIOS (Boito et al. 2016) makes of
// it: offset order within a file, order of arrival between files, shifted by how much they ask for.
//
// The idea: a file's queue (one per kind) that becomes busy is offered a quantum, twice as much
// each time another file is chosen instead, and may be served once the offer covers all that it has
// waiting. So a file is due at: choices made when it became busy + shift, where the shift is the
// least k with quantum * 2^k >= its waiting bytes; more waiting bytes move it back. The file that
// is due first is chosen, the one that has been busy longest among equals. It is swept by offset
// and aggregated until it is empty or got quantum * 2^shift bytes, of which the request that
// reaches them is the last; if it then has more, it becomes busy again. Settings: `quantum`,
// `aggregation`.
//
// What it leaves out: aIOLi holds a request back when it expects its successor soon. Starves no
// request: the shift is 64 at most, so of files that become busy later only finitely many go ahead,
// and a file's sweep comes to every request, as in hbrr.

#pragma once

#include <bit>

#include "ranked_files.hpp"

namespace penstock {

class Aioli final : public Scheduler {
 public:
  explicit Aioli(const Settings& settings)
      : quantum_(settings.quantum), aggregation_(settings.aggregation) {}

  void add(Request& request) override {
    files_.add(request, [&](RankedFile& file) {
      if (file.queue.opened() == request.number) {
        file.since = choices_;
      } else if (file.rank == served_key) {
        return served_key;
      }
      return due(file);
    });
  }

  Batch take(Time) override {
    if (files_.size() == 0) return {};
    RankedFile& file = files_.first();
    if (file.rank != served_key) {
      left_ = quantum_ << shift(file);
      ++choices_;
    }
    bool ends = false;
    return files_.take(
        file,
        [&](FileQueue& queue) {
          Batch batch = queue.take(std::min(aggregation_, left_));
          left_ -= std::min(left_, batch.bytes());
          ends = left_ == 0 || batch.bytes() == 0;
          return batch;
        },
        [&](RankedFile& rest) {
          if (!ends) return served_key;
          rest.since = choices_;
          return due(rest);
        });
  }

  Time ready_at(Time now) const override { return files_.size() == 0 ? never : now; }
  std::size_t size() const override { return files_.size(); }
  std::vector<Request*> drain() override { return files_.drain(); }

 private:
  static constexpr std::uint64_t served_key = 0;  // before all that are due

  int shift(const RankedFile& file) const {
    const std::uint64_t bytes = file.queue.bytes();
    return bytes == 0 ? 0 : std::bit_width((bytes - 1) / quantum_);
  }

  std::uint64_t due(const RankedFile& file) const {
    return 1 + file.since + static_cast<std::uint64_t>(shift(file));
  }

  const std::uint64_t quantum_;
  const std::uint64_t aggregation_;
  RankedFiles files_;
  std::uint64_t choices_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace penstock
