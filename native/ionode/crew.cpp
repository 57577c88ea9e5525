#include "crew.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

namespace penstock {
namespace {

constexpr auto relief_interval = std::chrono::milliseconds(2);
constexpr Time relief_after = 2'000'000;
constexpr std::uint32_t requests_between_polls = 16;

}  // namespace

std::chrono::steady_clock::time_point in_seconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

void Crew::start(const Lock&, std::function<void()> thread) {
  thread_ = std::move(thread);
  spawn();
}

void Crew::spawn() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // Signals are for the thread that controls the node.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(thread_).detach();
    ++threads_;
  } catch (const std::system_error&) {
    // No thread to be had: those there are serve on.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Crew::run(Lock& lock) {
  while (!stopping_) {
    handed_over_ = false;
    const bool overdue = !polling_ && served_since_poll_ >= requests_between_polls;
    if (!overdue && work_.serve_next(lock)) continue;
    if (!polling_) {
      poll(lock);
    } else {
      follow(lock);
    }
  }
  --threads_;
  shared_.changed.notify_all();
}

bool Crew::stop(Lock& lock, double seconds) {
  stopping_ = true;
  followers_.notify_all();
  relief_.notify_all();
  epoll_.poke();
  return shared_.changed.wait_until(lock, in_seconds(seconds), [this] { return threads_ == 0; });
}

void Crew::poll(Lock& lock) {
  polling_ = true;
  ++polls_;
  served_since_poll_ = 0;
  const Time waited_until = work_.poll(lock);
  polling_ = false;
  unattended_since_ = waited_until;
}

// Waits until there is something to do.
void Crew::follow(Lock& lock) {
  // The poller may sleep past the time at which the scheduler releases a batch.
  if (work_.is_ready_before(lock, poll_until_)) epoll_.poke();
  if (!watching_) {
    watch(lock);
    return;
  }
  ++idle_;
  followers_.wait(lock, [this] { return handed_over_ || stopping_; });
  --idle_;
}

// Takes over polling if the poller does not come back from a request that should have been short.
void Crew::watch(Lock& lock) {
  watching_ = true;
  std::uint64_t seen = polls_ - 1;
  while (!handed_over_ && !stopping_) {
    if (!polling_ && now() - unattended_since_ >= relief_after) break;
    if (polling_ && polls_ == seen) {
      relief_asleep_ = true;
      relief_.wait(lock);
      relief_asleep_ = false;
    } else {
      seen = polls_;
      relief_.wait_for(lock, relief_interval);
    }
  }
  watching_ = false;
}

void Crew::hand_over(const Lock& lock) {
  if (polling_ || handed_over_) return;
  if (idle_ > 0) {
    handed_over_ = true;
    followers_.notify_one();
  } else if (watching_) {
    handed_over_ = true;
    relief_.notify_one();
  } else if (threads_ <= work_.most_threads(lock)) {
    handed_over_ = true;
    spawn();
  }
}

void Crew::expect_relief(const Lock& lock) {
  if (polling_) return;
  if (relief_asleep_) {
    relief_.notify_one();
  } else if (!watching_ && !handed_over_) {
    hand_over(lock);
  }
}

}  // namespace penstock
