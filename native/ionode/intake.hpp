// The clients of other hosts at an I/O node: their connections, from bytes to requests in the
// queues, and what is left of their replies.
//
// The poller reads, without the lock; what was read arrives with the lock held.

#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "connection.hpp"
#include "crew.hpp"
#include "epoll.hpp"
#include "queues.hpp"
#include "shared.hpp"

namespace penstock {

class Intake {
 public:
  Intake(Shared& shared, Queues& queues, Crew& crew, Epoll& epoll);

  // Before the threads start.
  void require(const std::string& token) { token_ = token; }

  // The poller, without the lock.
  void input(Connection& connection, std::uint32_t events);
  void resume(Connection& connection);

  // The poller, with the lock.
  Connection& let_in(const Lock&, int descriptor, const Origin& origin, Quota::Share share);
  // Those to be read from although epoll reports no event.
  std::vector<Connection*> take_resumed(const Lock&) { return std::exchange(resumed_, {}); }
  void arrive(const Lock& lock, Time before, Time now);
  void close_doomed(Lock& lock);
  void expire(const Lock& lock, Time now);
  Time expires(const Lock&) const;

  // Any thread.
  // To be closed as soon as no request of it is queued, in service or being answered.
  void doom(const Lock& lock, Connection& connection);
  void doom_all(const Lock& lock);
  // The socket takes no more of a reply for now.
  void stall(const Lock& lock, Connection& connection);
  // The data of a READ has gone out, or never will.
  void finish_reply(const Lock& lock, Connection& connection);
  // The memory that a request used.
  void release(const Lock& lock, Connection& connection);
  // Without the lock: that somebody with the token has seen this transcript.
  void prove(const penstock_transcript& transcript, const char* role,
             std::uint8_t (&proof)[PENSTOCK_DIGEST_BYTES]) const;
  std::size_t size(const Lock&) const { return connections_.size(); }

 private:
  friend class Rehearsal;
  enum class Outcome : std::uint8_t {
    frame,
    wrong,
    gone,
    early,     // input while a reply with data is on its way
    progress,  // of a stalled reply
    sent,      // the rest of a stalled reply
  };
  struct Arrival {
    Connection* connection;
    Outcome outcome;
  };

  // Sockets: intake.cpp.
  void read(Connection& connection);
  Parser::Step place_payload(Connection& connection);
  void arrive(const Lock& lock, const Arrival& arrival, Time before, Time now);
  void end_stall(const Lock& lock, Connection& connection);

  // From frames to exchanges: requests.cpp.
  void begin(const Lock& lock, Connection& connection, Time before, Time now);
  static bool greet(Connection& connection);
  bool admit(const Lock& lock, Connection& connection);
  static void begin_open(const Lock&, Connection& connection);
  void begin_transfer(const Lock& lock, Connection& connection);

  Shared& shared_;
  Queues& queues_;
  Crew& crew_;
  Epoll& epoll_;
  std::string token_;
  const std::shared_ptr<Quota> memory_;
  Payloads payloads_;  // has a lock of its own
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::list<Connection*> stalled_;
  std::list<Connection*> parked_;
  std::vector<Connection*> doomed_;
  std::vector<Connection*> resumed_;
  std::vector<Arrival> arrivals_;  // the poller's
};

}  // namespace penstock
