// The threads of an I/O node. One of them polls; it serves short requests itself, without waking
// another, and hands polling over before a long one. One of the idle threads, the relief, looks
// after two milliseconds whether a request that should have been short keeps the poller away. An
// idle node has no periodic wakeups.
//
// Guarded by the node's lock.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>

#include "epoll.hpp"
#include "lock.hpp"
#include "shared.hpp"

namespace penstock {

// What the threads do.
class Work {
 public:
  virtual ~Work() = default;
  // False: there is nothing to serve now.
  virtual bool serve_next(Lock& lock) = 0;
  // By one thread at a time; returns when it was over with waiting.
  virtual Time poll(Lock& lock) = 0;
  virtual bool is_ready_before(const Lock& lock, Time until) const = 0;
  virtual std::size_t most_threads(const Lock& lock) const = 0;
};

class Crew {
 public:
  Crew(Shared& shared, Epoll& epoll, Work& work) : shared_(shared), epoll_(epoll), work_(work) {}

  // Start the first thread; each thread calls this function, which calls `run`.
  void start(const Lock& lock, std::function<void()> thread);
  void run(Lock& lock);
  // True if all threads ended in time.
  bool stop(Lock& lock, double seconds);

  // Before a long request: have another thread poll, and serve other requests.
  void hand_over(const Lock& lock);
  // Before a short request: have the relief check that it really is short.
  void expect_relief(const Lock& lock);
  void served(const Lock&, std::size_t requests) {
    served_since_poll_ += static_cast<std::uint32_t>(requests);
  }

  // The poller: it sleeps until then.
  void sleeps_until(const Lock&, Time until) { poll_until_ = until; }
  // It looks again before it sleeps, or wakes.
  void poke(const Lock&) {
    if (polling_) epoll_.poke();
  }

 private:
  friend class Rehearsal;  // the fuzzer's: no other thread is woken
  void spawn();
  void poll(Lock& lock);
  void follow(Lock& lock);
  void watch(Lock& lock);

  Shared& shared_;
  Epoll& epoll_;
  Work& work_;
  std::function<void()> thread_;
  std::condition_variable followers_;
  std::condition_variable relief_;
  bool stopping_ = false;
  std::uint32_t threads_ = 0;
  std::uint32_t idle_ = 0;
  bool polling_ = false;
  bool handed_over_ = false;  // a thread was woken, or started, to take over polling
  bool watching_ = false;     // there is a relief
  bool relief_asleep_ = false;
  Time unattended_since_ = 0;
  Time poll_until_ = 0;
  std::uint64_t polls_ = 0;
  std::uint32_t served_since_poll_ = 0;
};

std::chrono::steady_clock::time_point in_seconds(double seconds);

}  // namespace penstock
