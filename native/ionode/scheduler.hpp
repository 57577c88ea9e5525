// The interface of request schedulers: requests in, contiguous batches of them out.
//
// Pure: no clock, no thread, no file. The caller passes the time, holds the lock, and owns the
// requests, which are linked into the scheduler from `add` until `take` or `drain` gives them back.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

// Nanoseconds of CLOCK_MONOTONIC.
using Time = std::uint64_t;
inline constexpr Time never = std::numeric_limits<Time>::max();

enum class Kind : std::uint8_t { read, write, sync };

struct Request {
  Time arrived = 0;
  std::uint64_t file = 0;  // equal for requests that one call may serve: same inode, user and flags
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;   // none of a sync
  std::uint32_t server = 0;  // the storage target of its first byte, by the stripe map
  std::uint64_t group = 0;   // the job whose share it counts against
  Kind kind = Kind::write;
  bool permit = false;       // asks for permission; others are done by the I/O node itself
  std::uint64_t user = 0;    // the job's
  std::uint64_t number = 0;  // given by UserQueue::add: the order of arrival, also where clocks tie

  std::uint64_t end() const { return offset + bytes; }
};

// Requests that one vectored call serves: the same file and kind, each beginning where the one
// before it ends. Syncs are always alone. One alone needs no memory of its own, for most are.
class Batch {
 public:
  Batch() = default;
  explicit Batch(Request& alone) : alone_(&alone) {}
  Batch(Batch&& other) noexcept
      : alone_(std::exchange(other.alone_, nullptr)), many_(std::exchange(other.many_, {})) {}
  Batch& operator=(Batch&& other) noexcept {
    alone_ = std::exchange(other.alone_, nullptr);
    many_ = std::exchange(other.many_, {});
    return *this;
  }

  void push_back(Request* request) {
    if (empty()) {
      alone_ = request;
      return;
    }
    if (many_.empty()) many_.push_back(alone_);
    many_.push_back(request);
  }

  std::size_t size() const { return many_.empty() ? (alone_ == nullptr ? 0 : 1) : many_.size(); }
  bool empty() const { return alone_ == nullptr; }
  Request* const* begin() const { return many_.empty() ? &alone_ : many_.data(); }
  Request* const* end() const { return begin() + size(); }
  Request* operator[](std::size_t k) const { return begin()[k]; }
  Request* front() const { return *begin(); }
  Request* back() const { return end()[-1]; }

  std::uint64_t bytes() const {
    std::uint64_t total = 0;
    for (const Request* request : *this) total += request->bytes;
    return total;
  }

 private:
  Request* alone_ = nullptr;
  std::vector<Request*> many_;
};

// As many as one vectored call takes (IOV_MAX of Linux).
inline constexpr std::size_t largest_batch = 1024;

// What groups share by weight.
enum class Shares : std::uint8_t { bytes, concurrency };

struct Settings {
  std::string scheduler = "fifo";
  Shares shares = Shares::bytes;
  std::uint64_t window = 1'000'000;  // twins: nanoseconds for one server
  double window_seconds = 1e-3;      // seconds, as configured, for comparison with a tuner's choice
  std::uint64_t quantum = 64 << 10;  // hbrr, aioli, mlf: bytes of one file in a row
  std::uint64_t aggregation = 4 << 20;  // bytes that one batch holds at most
  std::uint32_t servers = 1;            // storage targets
  std::uint32_t io_node = 0;            // this I/O node's number, for twins' translation
  std::uint32_t depth = 16;             // batches in service at once
  std::uint64_t dirty_window = 0;       // bytes of a file ahead of the storage; 0: any
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  virtual void add(Request& request) = 0;

  // What to serve now; empty if nothing should be served before `ready_at`.
  virtual Batch take(Time now) = 0;

  // When `take` will have something although nothing arrives: at most `now` if it has already,
  // never if there is nothing at all.
  virtual Time ready_at(Time now) const = 0;

  virtual std::size_t size() const = 0;

  // Give back all requests, in order of arrival: for a switch to another scheduler.
  virtual std::vector<Request*> drain() = 0;
};

// By name, or std::invalid_argument.
Shares shares_named(const std::string& name);

class UserQueue;

// The fair queue over schedulers of that name (user_queue.hpp), or std::invalid_argument.
std::unique_ptr<UserQueue> make_scheduler(const Settings& settings);

// In the order in which they are listed to people.
const std::vector<std::string>& scheduler_names();

}  // namespace penstock
