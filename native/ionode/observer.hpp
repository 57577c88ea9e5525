// Metrics of the requests at an I/O node, from which access patterns are recognised (thesis
// forwarding, 3.2). Pure: the caller passes the time and holds the lock.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "scheduler.hpp"

namespace penstock {

// Of one interval. Requests count when they arrive, bytes when they have been served.
struct Observation {
  Time length = 0;
  Time busy = 0;  // of it, with a request in the node
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t handles = 0;
  std::uint64_t clients = 0;
  std::uint64_t smallest = 0;
  std::uint64_t largest = 0;
  std::uint64_t requested_bytes = 0;
  double distance = 0;  // mean |offset - offset of the request before to the same file|
  double forward = 0;   // the part that began where the one before ended
  double queued = 0;    // requests in the node, on the mean
};

class Observer {
 public:
  explicit Observer(Time now) : began_(now), until_(now) {}

  // `client` is the client's own mark: the interval in which it was last counted.
  void arrived(const Request& request, std::uint64_t file, std::uint64_t& client, Time now) {
    pass(now);
    ++inside_;
    ++(request.kind == Kind::read ? seen_.reads : seen_.writes);
    const std::uint64_t bytes = request.bytes;
    seen_.smallest = seen_.requested_bytes == 0 ? bytes : std::min(seen_.smallest, bytes);
    seen_.largest = std::max(seen_.largest, bytes);
    seen_.requested_bytes += bytes;
    if (client != interval_) {
      client = interval_;
      ++seen_.clients;
    }
    // The observer does not see closes: old files are forgotten, and all files beyond a limit.
    if (handles_.size() >= most_handles) handles_.clear();
    const auto [entry, is_new] = handles_.try_emplace(file);
    Handle& handle = entry->second;
    if (!is_new) {
      ++followed_;
      distances_ += static_cast<double>(std::max(request.offset, handle.offset) -
                                        std::min(request.offset, handle.offset));
      if (request.offset == handle.end) ++continued_;
    }
    if (handle.interval != interval_) ++seen_.handles;
    handle = {request.offset, request.end(), interval_};
  }

  // `moved` bytes, or none of one that failed or whose client had gone.
  void left(Kind kind, std::uint64_t moved, Time now) {
    pass(now);
    if (inside_ > 0) --inside_;
    (kind == Kind::read ? seen_.read_bytes : seen_.write_bytes) += moved;
  }

  // Return the metrics since the last call, and begin the next interval.
  Observation take(Time now) {
    pass(now);
    seen_.length = until_ - began_;
    if (followed_ > 0) {
      seen_.distance = distances_ / static_cast<double>(followed_);
      seen_.forward = static_cast<double>(continued_) / static_cast<double>(followed_);
    }
    if (seen_.length > 0) seen_.queued = waited_ / static_cast<double>(seen_.length);
    const Observation taken = seen_;
    std::erase_if(handles_, [this](const auto& known) {
      return known.second.interval + forgotten_after < interval_;
    });
    seen_ = {};
    began_ = until_;
    distances_ = waited_ = 0;
    followed_ = continued_ = 0;
    ++interval_;
    return taken;
  }

 private:
  struct Handle {
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint64_t interval = 0;
  };
  static constexpr std::size_t most_handles = 16384;
  static constexpr std::uint64_t forgotten_after = 60;

  void pass(Time now) {
    if (now <= until_) return;
    if (inside_ > 0) {
      seen_.busy += now - until_;
      waited_ += static_cast<double>(inside_) * static_cast<double>(now - until_);
    }
    until_ = now;
  }

  Observation seen_;
  std::unordered_map<std::uint64_t, Handle> handles_;
  std::uint64_t interval_ = 1;  // none has the mark 0
  Time began_;
  Time until_;
  std::uint64_t inside_ = 0;
  std::uint64_t followed_ = 0;
  std::uint64_t continued_ = 0;
  double distances_ = 0;
  double waited_ = 0;  // request-nanoseconds
};

}  // namespace penstock
