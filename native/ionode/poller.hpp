// What one thread of an I/O node at a time does: it waits for its sockets, lets clients in, has
// them read, and closes those that are to go.

#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "crew.hpp"
#include "desk.hpp"
#include "epoll.hpp"
#include "intake.hpp"
#include "queues.hpp"
#include "shared.hpp"

namespace penstock {

// User ids that a user's containers may run as.
struct SubordinateIds {
  uid_t first;
  uid_t count;
  uid_t owner;
};

class Poller {
 public:
  Poller(Shared& shared, Queues& queues, Crew& crew, Desk& desk, Intake& intake, Epoll& epoll);
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller();

  // The descriptor is this object's from then on.
  void listen(const Lock&, int listener, Transport transport) { listeners_[listener] = transport; }
  void start(const Lock&);
  // Accept nobody any more.
  void close_listeners(const Lock&);
  void own(const Lock&, std::vector<SubordinateIds> ids) { subordinate_ids_ = std::move(ids); }
  // A descriptor that is opened again and again, of /dev/null.
  int reserve() const { return reserve_; }

  // Returns when it was over with waiting.
  Time poll(Lock& lock);

 private:
  friend class Rehearsal;
  Time deadline(const Lock& lock, Time now) const;
  void handle(const epoll_event& event);
  void accept_clients(int listener);
  void welcome(int listener, int descriptor);
  void add_stranger(const Lock& lock, Peer& peer, const Origin& origin);
  uid_t owner_of(const Lock&, uid_t uid) const;
  void doom(const Lock& lock, Peer& peer);
  void close_doomed(Lock& lock);
  void expire(const Lock& lock, Time now);

  Shared& shared_;
  Queues& queues_;
  Crew& crew_;
  Desk& desk_;
  Intake& intake_;
  Epoll& epoll_;
  int reserve_ = -1;  // given up for a moment when descriptors have run out
  std::map<int, Transport> listeners_;
  std::vector<SubordinateIds> subordinate_ids_;
};

}  // namespace penstock
