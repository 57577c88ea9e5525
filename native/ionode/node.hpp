// An I/O node: threads take turns at one epoll, read requests, and serve the batches that the
// scheduler returns. Clients of this host ask for permission and make their calls themselves;
// those of other hosts send their data, and threads of the node make the calls.
//
// One thread polls. It serves short requests itself, without waking another thread, and hands
// polling over before a long one. One of the idle threads, the relief, looks after two milliseconds
// whether a request that should have been short keeps the poller away. An idle node has no periodic
// wakeups.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caller.hpp"
#include "calls.hpp"
#include "connection.hpp"
#include "observer.hpp"
#include "queues.hpp"
#include "rounds.hpp"
#include "sessions.hpp"
#include "strangers.hpp"

namespace penstock {

struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t batches = 0;
  std::uint64_t aggregated = 0;
  std::uint64_t errors = 0;
  std::uint64_t refused = 0;
  std::uint64_t dropped = 0;
};

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

struct NodeOptions {
  std::uint64_t id = 0;
  bool all_users = false;  // of this host
  Limits limits;
  Settings settings;
  std::uint64_t stripe_size = 1 << 20;
  Time patience = 30'000'000'000;  // with a client that does not read its reply
};

// User ids that a user's containers may run as.
struct SubordinateIds {
  uid_t first;
  uid_t count;
  uid_t owner;
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  explicit Node(const NodeOptions& options);
  ~Node();

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
  enum class Outcome : std::uint8_t {
    frame,
    wrong,
    gone,
    early,     // input while a reply with data is on its way
    progress,  // of a stalled reply
    sent,      // the rest of a stalled reply
  };

  // Threads: node.cpp.
  void spawn();
  void work();
  void confine() const;
  void follow(Lock& lock);
  void watch(Lock& lock);
  void hand_over(const Lock& lock);
  void expect_relief(const Lock& lock);
  bool long_to_serve(const Batch& batch) const;
  void poke();
  // Serving: serving.cpp.
  void end_service(const Lock& lock, Queues::Serving service);
  bool serve_next(Lock& lock);
  void serve_batch(Lock& lock, const Batch& batch);
  void serve_chore(Lock& lock, Exchange& exchange);
  void open(Lock& lock, Exchange& exchange);
  void close_file(Lock& lock, Exchange& exchange);
  bool client_gone(const Exchange& exchange, Time now) const;
  void account(const Exchange& exchange);
  void reply(Lock& lock, Exchange& exchange);
  void drop(Exchange& exchange);
  void reply_with_payload(Lock& lock, Connection& connection);
  bool send_rest(Connection& connection);
  void finish_reply(Connection& connection);
  void release(Connection& connection);
  void close_left_file(Lock& lock, std::shared_ptr<OpenFile> file);

  // Polling: polling.cpp.
  void poll(Lock& lock);
  Time poll_deadline(const Lock& lock, Time now) const;
  void accept_clients(int listener);
  void welcome(int listener, int descriptor);
  uid_t owner_of(uid_t uid) const;
  void input(Connection& connection, std::uint32_t events);
  void read(Connection& connection);
  static ssize_t receive(Connection& connection);
  Parser::Step place_payload(Connection& connection);
  void arrive(const Lock& lock, Connection& connection, Outcome outcome, Time before, Time now);
  void end_stall(Connection& connection);
  void doom(Peer& peer);
  void doom(Connection& connection);
  void close_doomed(Lock& lock);
  void expire(Time now);

  // Clients of this host: callers.cpp.
  bool act_upon(const Lock& lock, const CallerMessage& said, std::uint32_t& budget, Time now);
  bool greet(const Lock& lock, Caller& caller, const penstock_permit_hello& hello);
  void grant(const Lock& lock, const Batch& batch);
  bool collect(Permit& permit, std::uint32_t& budget);
  void collect_all();
  void refuse(Caller& caller);
  void doom(Caller& caller);
  bool part(const Lock& lock, Caller& caller, std::uint32_t& budget);
  void close_doomed_callers(Lock& lock);
  std::uint64_t share_of(const Group& group) const;

  // From frames to exchanges: intake.cpp.
  void begin(const Lock& lock, Connection& connection, Time before, Time now);
  bool greet(const Lock& lock, Connection& connection);
  void begin_open(Connection& connection);
  void begin_transfer(Connection& connection);

  // Set before the threads start.
  const NodeOptions options_;
  std::uint64_t boot_ = 0;
  uid_t own_uid_;
  std::string token_;
  std::vector<Root> roots_;
  std::shared_ptr<FileNumbers> numbers_ = std::make_shared<FileNumbers>();
  // What no user of this host and no other host may take alone.
  std::shared_ptr<Quota> descriptors_;
  std::shared_ptr<Quota> processes_;
  std::shared_ptr<Quota> permits_quota_;
  std::shared_ptr<Quota> memory_;
  Payloads payloads_;
  int epoll_ = -1;
  int poke_ = -1;
  int reserve_ = -1;  // given up for a moment when descriptors have run out

  std::mutex mutex_;
  std::condition_variable followers_;
  std::condition_variable relief_;
  std::condition_variable changed_;  // connections or threads went
  std::vector<SubordinateIds> subordinate_ids_;
  Queues queues_;
  Sessions sessions_;
  Counts counts_;
  Observer observer_;
  std::map<int, Transport> listeners_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::unordered_map<Caller*, std::unique_ptr<Caller>> callers_;
  std::vector<Caller*> doomed_callers_;
  Strangers strangers_;
  std::list<Connection*> stalled_;
  std::vector<Connection*> doomed_;
  std::vector<Connection*> resumed_;  // to be read from although epoll reports no event
  std::list<Connection*> parked_;

  bool started_ = false;
  bool confined_ = false;
  bool draining_ = false;
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
  std::uint32_t usual_chore_ = 0;  // nanoseconds, moving average

  struct Arrival {
    Connection* connection;
    Outcome outcome;
  };
  std::vector<Arrival> arrivals_;         // the poller's
  Rounds<Caller, CallerMessage> rounds_;  // the poller's
};

Time now();

}  // namespace penstock
