// hbrr: handle-based round robin (Ohta et al. 2010, in IOFSL).
//
// The idea: one queue per file (and kind), swept by offset and aggregated; one file is served until
// it got its quantum, then it is the next one's turn. Settings: `quantum`, bytes of one file in a
// row, where the request that reaches it is the last; `aggregation`. Files come in the order in
// which they became busy. Starves no request: the round comes to every file, and a file's sweep to
// every request, the oldest after 64 batches at the latest.

#pragma once

#include <algorithm>
#include <list>
#include <map>

#include "file_queue.hpp"

namespace penstock {

class Hbrr : public Scheduler {
 public:
  explicit Hbrr(const Settings& settings)
      : quantum_(settings.quantum), aggregation_(settings.aggregation) {}

  void add(Request& request) override {
    const auto [entry, is_new] = where_.try_emplace(key_of(request), round_.end());
    if (is_new) {
      round_.push_back({key_of(request), {}, quantum_, quantum_});
      entry->second = std::prev(round_.end());
    }
    entry->second->queue.add(request);
    ++size_;
  }

  Batch take(Time) override {
    if (round_.empty()) return {};
    Turn& turn = round_.front();
    Batch batch = turn.queue.take(std::min(aggregation_, turn.left));
    turn.left -= std::min(turn.left, batch.bytes());
    size_ -= batch.size();
    if (turn.queue.empty()) {
      where_.erase(turn.key);
      round_.pop_front();
    } else if (turn.left == 0 || batch.bytes() == 0) {
      turn.quantum = next_quantum(turn.quantum);
      turn.left = turn.quantum;
      round_.splice(round_.end(), round_, round_.begin());
    }
    return batch;
  }

  Time ready_at(Time now) const override { return size_ == 0 ? never : now; }
  std::size_t size() const override { return size_; }

  std::vector<Request*> drain() override {
    std::vector<Request*> all;
    for (const Turn& turn : round_) turn.queue.drain_into(all);
    std::sort(all.begin(), all.end(), ByNumber{});
    round_.clear();
    where_.clear();
    size_ = 0;
    return all;
  }

 protected:
  // Of a file that used its quantum up and has more.
  virtual std::uint64_t next_quantum(std::uint64_t last) const { return last; }

  const std::uint64_t quantum_;

 private:
  struct Turn {
    FileKey key;
    FileQueue queue;
    std::uint64_t quantum;
    std::uint64_t left;
  };

  const std::uint64_t aggregation_;
  std::list<Turn> round_;  // the file at the front is served
  std::map<FileKey, std::list<Turn>::iterator> where_;
  std::size_t size_ = 0;
};

}  // namespace penstock
