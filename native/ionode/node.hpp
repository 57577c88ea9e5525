// An I/O node. Clients of this host ask for permission and make their calls themselves; those of
// other hosts send their data, and threads of the node make the calls.
//
// Its parts, and what guards them:
//
//   Shared   options, the lock, counts, sessions        the lock, by Guarded
//   Queues   what waits, and who has the places         the lock
//   Crew     the threads, and which of them polls       the lock
//   Desk     clients of this host                       the lock; `read` and `hear`: the poller
//   Intake   clients of other hosts                     the lock; `input` and `resume`: the poller
//   Server   calls, replies, grants                     the lock, released for calls and replies
//   Poller   sockets that come, say something and go    one thread at a time, as Crew says
//   Epoll    what the kernel watches                    the kernel's
//
// One lock, for each request changes several of them. Methods that want it held take it.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "crew.hpp"
#include "desk.hpp"
#include "epoll.hpp"
#include "intake.hpp"
#include "observer.hpp"
#include "poller.hpp"
#include "queues.hpp"
#include "server.hpp"
#include "shared.hpp"

namespace penstock {

struct Measurement {
  Counts counts;
  std::string scheduler;
  std::size_t connections = 0;
  std::size_t sessions = 0;
  std::size_t files = 0;
  std::size_t queued = 0;
  std::map<std::string, std::uint64_t> groups;      // bytes
  std::map<std::string, std::uint64_t> in_service;  // batches, by group
};

class Node : public std::enable_shared_from_this<Node>, private Work {
 public:
  explicit Node(const NodeOptions& options);

  void listen_unix(const std::string& path);
  // On a numeric address; returns the port.
  std::uint16_t listen_tcp(const std::string& host, std::uint16_t port, const std::string& token,
                           const std::vector<std::string>& roots);
  void start();
  void configure(const Settings& settings, std::uint64_t stripe_size);
  void weigh(const std::map<std::string, double>& weights);
  // Whose processes have other users' ids (/etc/subuid).
  void own(std::vector<SubordinateIds> ids);
  Measurement measure();
  // The metrics since the last call.
  Observation observe();

  // Accept no new clients, and disconnect each client once it is idle. True if all left in time.
  bool drain(double seconds);
  // True if all threads ended in time; a call that never returns keeps its thread.
  bool stop(double seconds);

  Settings settings();
  std::uint64_t stripe_size();

 private:
  friend class Rehearsal;  // the fuzzer's: a node driven by hand, without threads
  void work();
  void confine() const;
  bool serve_next(Lock& lock) override { return server_.serve_next(lock); }
  Time poll(Lock& lock) override { return poller_.poll(lock); }
  bool is_ready_before(const Lock& lock, Time until) const override;
  std::size_t most_threads(const Lock& lock) const override;

  Shared shared_;
  Epoll epoll_;
  Queues queues_;
  Crew crew_;
  Desk desk_;
  Intake intake_;
  Server server_;
  Poller poller_;
  bool started_ = false;
  bool confined_ = false;
};

}  // namespace penstock
