#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

// A 4-ary min-heap of (key, tie, item). Four children a node: the paper's scenarios keep it in a
// few cache lines. `Position` records where each item lies, so that any item can be removed.
template <class Position>
class Heap {
 public:
  struct Entry {
    double key;
    std::int32_t tie;
    std::int32_t item;

    [[nodiscard]] bool before(const Entry& other) const {
      return key < other.key || (key == other.key && tie < other.tie);
    }
  };

  explicit Heap(Position position = {}) : position_(position) {}

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Entry& top() const { return entries_.front(); }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  void push(Entry entry) {
    entries_.push_back(entry);
    rise(entries_.size() - 1, entry);
  }

  void pop() { remove(0); }

  void remove(std::size_t at) {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (at == entries_.size()) return;
    if (at > 0 && last.before(entries_[(at - 1) / 4])) {
      rise(at, last);
    } else {
      sink(at, last);
    }
  }

 private:
  void place(std::size_t at, const Entry& entry) {
    entries_[at] = entry;
    position_(entry.item, at);
  }

  void rise(std::size_t at, const Entry entry) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!entry.before(entries_[parent])) break;
      place(at, entries_[parent]);
      at = parent;
    }
    place(at, entry);
  }

  void sink(std::size_t at, const Entry entry) {
    const std::size_t count = entries_.size();
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= count) break;
      std::size_t best = first;
      const std::size_t stop = first + 4 < count ? first + 4 : count;
      for (std::size_t child = first + 1; child < stop; ++child) {
        if (entries_[child].before(entries_[best])) best = child;
      }
      if (!entries_[best].before(entry)) break;
      place(at, entries_[best]);
      at = best;
    }
    place(at, entry);
  }

  std::vector<Entry> entries_;
  [[no_unique_address]] Position position_;
};

struct Untracked {
  void operator()(std::int32_t, std::size_t) const {}
};

}  // namespace penstock
