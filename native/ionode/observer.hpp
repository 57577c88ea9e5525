// Metrics of the requests at an I/O node, from which access patterns are recognised (thesis
// forwarding, 3.2). Pure: the caller passes the time and holds the lock.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

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
  // Parts of all requests:
  double sequential = 0;  // begin where the one before in their stream ended
  double strided = 0;     // are of a run that begins as far ahead as the one before it did
  double shared = 0;      // are to files with several streams
};

// The requests of one process to a file that it has opened, in their order. A client's own offsets
// tell what it does; those of all clients to a file also depend on who comes first. A run is
// requests that follow each other without a gap: a stride may be of several, as those of a call
// that is too large for one.
struct Stream {
  std::uint64_t runs = 0;
  std::uint64_t begin = 0;     // of the run
  std::uint64_t end = 0;       // of the last request
  std::uint64_t step = 0;      // from the begin of the run before
  std::uint64_t length = 0;    // of the run before
  bool strides = false;        // the run began as far ahead as the one before
  std::uint64_t interval = 0;  // in which it was last counted
};

class Observer {
 public:
  explicit Observer(Time now) : began_(now), until_(now) {}

  // `client` is the client's own mark: the interval in which it was last counted.
  void arrived(const Request& request, std::uint64_t file, Stream& stream, std::uint64_t& client,
               Time now) {
    pass(now);
    ++inside_;
    note(request, file, stream, client);
  }

  // A client of this host has made a call by itself, and says when.
  void called(const Request& request, std::uint64_t file, Stream& stream, std::uint64_t& client,
              std::uint64_t moved, Time began, Time ended) {
    note(request, file, stream, client);
    (request.kind == Kind::read ? seen_.read_bytes : seen_.write_bytes) += moved;
    if (ended <= began) return;
    waited_ += static_cast<double>(ended - began);
    if (!calls_.empty() && began <= calls_.back().ended && began >= calls_.back().began) {
      calls_.back().ended = std::max(calls_.back().ended, ended);
    } else if (calls_.size() < most_calls) {
      calls_.push_back({began, ended});
    }
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
    seen_.busy = std::min(seen_.busy + busy_with_calls(), seen_.length);
    if (followed_ > 0) {
      seen_.distance = distances_ / static_cast<double>(followed_);
      seen_.forward = static_cast<double>(continued_) / static_cast<double>(followed_);
    }
    if (seen_.length > 0) seen_.queued = waited_ / static_cast<double>(seen_.length);
    std::uint64_t shared = 0;
    for (const auto& [file, handle] : handles_) {
      if (handle.interval == interval_ && handle.streams > 1) shared += handle.requests;
    }
    if (seen_.reads + seen_.writes > 0) {
      const auto requests = static_cast<double>(seen_.reads + seen_.writes);
      seen_.sequential = static_cast<double>(sequential_) / requests;
      seen_.strided = static_cast<double>(strided_) / requests;
      seen_.shared = static_cast<double>(shared) / requests;
    }
    const Observation taken = seen_;
    std::erase_if(handles_, [this](const auto& known) {
      return known.second.interval + forgotten_after < interval_;
    });
    seen_ = {};
    began_ = until_;
    distances_ = waited_ = 0;
    followed_ = continued_ = 0;
    sequential_ = strided_ = 0;
    ++interval_;
    return taken;
  }

 private:
  struct Handle {
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint64_t interval = 0;
    std::uint64_t requests = 0;  // in that interval
    std::uint64_t streams = 0;   // in that interval
  };
  struct Span {
    Time began = 0;
    Time ended = 0;
  };
  static constexpr std::size_t most_handles = 16384;
  static constexpr std::size_t most_calls = 1 << 20;  // apart from each other, in an interval
  static constexpr std::uint64_t forgotten_after = 60;

  void note(const Request& request, std::uint64_t file, Stream& stream, std::uint64_t& client) {
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
    if (handle.interval != interval_) {
      ++seen_.handles;
      handle.requests = handle.streams = 0;
    }
    ++handle.requests;
    if (stream.interval != interval_) ++handle.streams;
    handle.offset = request.offset;
    handle.end = request.end();
    handle.interval = interval_;
    follow(stream, request);
  }

  // The time in which at least one call was under way. What clients say of times long past, or to
  // come, does not count.
  Time busy_with_calls() {
    std::sort(calls_.begin(), calls_.end(),
              [](const Span& a, const Span& b) { return a.began < b.began; });
    Time busy = 0, covered = began_;
    for (const Span& call : calls_) {
      const Time from = std::max(call.began, covered), to = std::min(call.ended, until_);
      if (to <= from) continue;
      busy += to - from;
      covered = to;
    }
    calls_.clear();
    return busy;
  }

  void follow(Stream& stream, const Request& request) {
    if (stream.runs > 0 && request.offset == stream.end) {
      if (request.end() - stream.begin > stream.length) stream.strides = false;
      ++(stream.strides ? strided_ : sequential_);
    } else {
      const std::uint64_t step = request.offset - stream.begin;
      stream.strides = stream.runs > 1 && request.offset > stream.end && step == stream.step;
      if (stream.strides) ++strided_;
      stream.step = step;
      stream.length = stream.end - stream.begin;
      stream.begin = request.offset;
      ++stream.runs;
    }
    stream.end = request.end();
    stream.interval = interval_;
  }

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
  std::vector<Span> calls_;     // of clients that made them themselves
  std::uint64_t interval_ = 1;  // none has the mark 0
  Time began_;
  Time until_;
  std::uint64_t inside_ = 0;
  std::uint64_t followed_ = 0;
  std::uint64_t continued_ = 0;
  std::uint64_t sequential_ = 0;
  std::uint64_t strided_ = 0;
  double distances_ = 0;
  double waited_ = 0;  // request-nanoseconds
};

}  // namespace penstock
