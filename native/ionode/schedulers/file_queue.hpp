// The queued requests of one file and kind, swept in the order of their offsets.

#pragma once

#include <set>
#include <tuple>

#include "arrivals.hpp"

namespace penstock {

struct FileKey {
  std::uint64_t file;
  Kind kind;

  auto operator<=>(const FileKey&) const = default;
};

inline FileKey key_of(const Request& request) { return {request.file, request.kind}; }

class FileQueue {
 public:
  // A stream that keeps ahead of the sweep would hold those behind it up for as long as it lasts:
  // so once in `batches_per_sweep` batches the sweep continues from the oldest request.
  static constexpr std::uint64_t batches_per_sweep = 64;

  void add(Request& request) {
    if (requests_.empty()) opened_ = request.number;
    requests_.insert(&request);
    arrivals_.insert(&request);
    bytes_ += request.bytes;
  }

  // The next in the sweep, with those that continue it as long as all stay within `limit` bytes.
  // After the last one the sweep starts again.
  Batch take(std::uint64_t limit) {
    if (++taken_ % batches_per_sweep == 0) return take_from(**arrivals_.begin(), limit);
    auto next = requests_.lower_bound(Place{position_, 0});
    if (next == requests_.end()) next = requests_.begin();
    return take_from(next, limit);
  }

  Batch take_from(Request& first, std::uint64_t limit) {
    return take_from(requests_.find(&first), limit);
  }

  bool empty() const { return requests_.empty(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t opened() const { return opened_; }  // the number of the request that it began with

  void drain_into(std::vector<Request*>& all) const {
    all.insert(all.end(), arrivals_.begin(), arrivals_.end());
  }

 private:
  struct Place {
    std::uint64_t offset;
    std::uint64_t number;
  };
  struct ByOffset {
    using is_transparent = void;
    bool operator()(const Request* a, const Request* b) const {
      return std::tie(a->offset, a->number) < std::tie(b->offset, b->number);
    }
    bool operator()(const Request* a, const Place& b) const {
      return std::tie(a->offset, a->number) < std::tie(b.offset, b.number);
    }
  };
  using Requests = std::set<Request*, ByOffset>;

  Batch take_from(Requests::iterator next, std::uint64_t limit) {
    Batch batch;
    std::uint64_t total = 0;
    do {
      Request& request = **next;
      requests_.erase(next);
      arrivals_.erase(&request);
      batch.push_back(&request);
      total += request.bytes;
      position_ = request.end();
      if (request.kind == Kind::sync || batch.size() == largest_batch) break;
      next = requests_.lower_bound(Place{position_, 0});
    } while (next != requests_.end() && (*next)->offset == position_ &&
             total + (*next)->bytes <= limit);
    if (total == 0) ++position_;  // or those without bytes would hold the sweep up
    bytes_ -= total;
    return batch;
  }

  Requests requests_;
  std::set<Request*, ByNumber> arrivals_;
  std::uint64_t taken_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t opened_ = 0;
};

}  // namespace penstock
