// What an I/O node does with what its queues give: permissions are granted, calls for clients of
// other hosts are made, accounted for and answered.
//
// With the lock held, by any thread; without it while a call is made, a file opened or a reply
// sent.

#pragma once

#include <memory>
#include <vector>

#include "calls.hpp"
#include "crew.hpp"
#include "desk.hpp"
#include "intake.hpp"
#include "queues.hpp"
#include "shared.hpp"

namespace penstock {

class Server {
 public:
  Server(Shared& shared, Queues& queues, Crew& crew, Desk& desk, Intake& intake);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Before the threads start. The descriptor is this object's from then on.
  void add_root(const Root& root) { roots_.push_back(root); }
  const std::vector<Root>& roots() const { return roots_; }

  // False if there is nothing to serve now.
  bool serve_next(Lock& lock);

 private:
  void end_service(const Lock& lock, Queues::Serving service);
  static bool long_to_serve(const Batch& batch);
  void serve_batch(Lock& lock, const Batch& batch);
  void serve_chore(Lock& lock, Exchange& exchange);
  void open(Lock& lock, Exchange& exchange);
  static void close_file(Lock& lock, Exchange& exchange);
  void close_left_file(Lock& lock, std::shared_ptr<OpenFile> file);
  static bool client_gone(const Exchange& exchange, Time now);
  void account(const Lock& lock, const Exchange& exchange);
  void drop(const Lock& lock, Exchange& exchange);
  void reply(Lock& lock, Exchange& exchange);
  bool send_challenge(const Connection& connection, const penstock_transcript& transcript) const;
  void reply_with_payload(Lock& lock, Connection& connection);

  Shared& shared_;
  Queues& queues_;
  Crew& crew_;
  Desk& desk_;
  Intake& intake_;
  const std::uint64_t boot_;
  std::vector<Root> roots_;
  const std::shared_ptr<FileNumbers> numbers_ = std::make_shared<FileNumbers>();
  std::uint32_t usual_chore_ = 0;  // nanoseconds, moving average
};

}  // namespace penstock
