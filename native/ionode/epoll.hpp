// The sockets that the poller watches, and what wakes it. Without the lock: the kernel has one.

#pragma once

#include <sys/epoll.h>

#include <span>

#include "peer.hpp"
#include "scheduler.hpp"

namespace penstock {

class Epoll {
 public:
  Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  ~Epoll();

  // False: it cannot be watched.
  bool add_listener(int listener);
  bool add(int descriptor, Peer& peer);
  // Whether its peer waits for room to send the rest of a reply.
  void set_sending(int descriptor, Peer& peer, bool sends);
  void poke();

  // The events until then, without those of pokes.
  std::span<epoll_event> wait(std::span<epoll_event> events, Time from, Time until);
  // The listener of an event, or -1: it is of a peer.
  static int listener_of(const epoll_event& event) {
    return (event.data.u64 & 1) != 0 ? static_cast<int>(event.data.u64 >> 1) : -1;
  }

 private:
  int epoll_ = -1;
  int poke_ = -1;
};

}  // namespace penstock
