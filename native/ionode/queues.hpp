// What waits at an I/O node, and who has the places in service: requests by user and job, the
// weights of jobs, calls under way and those that hang, permits. It decides what is served next,
// and acts upon nothing itself.
//
// Guarded by the node's lock; the caller passes the time.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "connection.hpp"
#include "lock.hpp"
#include "permits.hpp"
#include "sessions.hpp"
#include "stripe_map.hpp"
#include "user_queue.hpp"

namespace penstock {

class Queues {
 public:
  // A call under way, or several of one batch.
  struct Service {
    Origin origin;
    Time began;
    bool hangs = false;  // its place was given to others
  };
  using Serving = std::list<Service>::iterator;
  using Weights = std::map<std::string, double>;

  Queues(const Settings& settings, std::uint64_t stripe_size, bool all_users);

  const Settings& settings(const Lock&) const { return settings_; }
  std::uint64_t stripe_size(const Lock&) const { return stripe_size_; }
  void configure(const Lock&, const Settings& settings, std::uint64_t stripe_size,
                 Sessions& sessions);
  // Of the settings, for who has no lock.
  std::uint64_t dirty_window() const { return dirty_window_.load(std::memory_order_relaxed); }

  // Jobs by the names that the controller knows.
  void weigh(const Lock&, const Weights& weights, Sessions& sessions);
  void weigh(const Lock&, Group& group, Sessions& sessions);
  std::string public_name(const Group& group) const;
  std::uint32_t in_service(const Lock&, const Group& group) const;

  // Requests that were carried here.
  void add(const Lock&, Exchange& exchange);
  // Opens, closes, and what is answered without a call.
  void add_chore(const Lock&, Exchange& exchange) { chores_.push_back(&exchange); }
  // Files of sessions that ended.
  void add_left(const Lock&, std::vector<std::shared_ptr<OpenFile>> files);
  // What is to be done next, as far as there are places; null or empty if there is nothing.
  Exchange* take_chore(const Lock&);
  std::shared_ptr<OpenFile> take_left_file(const Lock&);
  Batch take(const Lock&, Time now);
  std::size_t size(const Lock&) const { return scheduler_->size(); }
  // That have requests, or had some just now.
  bool has_several_users(const Lock&, Time now) const {
    return scheduler_->parts(settings_.depth, now).users > 1;
  }

  // A call has a place in service until it returns or hangs. What its origin asks for besides waits
  // as soon as as many of its calls hang as there are places: the threads that it keeps are
  // bounded.
  Serving begin_service(const Lock&, const Origin& origin, Time now);
  // True: requests that were held back are queued again.
  bool end_service(const Lock&, Serving service, Time now);
  // One that `take` gave is over, having taken this long.
  void served(const Lock&, const Batch& batch, Time began, Time took);
  std::size_t services(const Lock&) const { return services_.size(); }

  // Permission for threads of this host: permits.hpp.
  bool ask(const Lock&, Permit& permit, const penstock_permit_message& question, Time now);
  void add(const Lock&, Permit& permit);
  void grant(const Lock&, const Batch& batch, Time now);
  void give_back(const Lock&, Permit& permit, std::uint32_t number, Time now);
  void leave(const Lock&, Permit& permit, Time now);
  std::size_t held(const Lock&) const { return permits_.held(); }

  // Take places back from those that do not use them.
  void make_room(const Lock&, Time now);
  // When something is to be taken or taken back, as far as it depends on time alone.
  Time deadline(const Lock&, Time now) const;
  bool is_ready_before(const Lock&, Time until, Time now) const;
  // Whether all that was begun is over.
  bool idle(const Lock&) const { return left_files_.empty() && services_.empty(); }
  bool empty(const Lock&) const;

 private:
  std::uint32_t taken() const { return in_service_ + static_cast<std::uint32_t>(permits_.held()); }
  bool has_room() const { return taken() < settings_.depth; }
  UserQueue::Places places() const { return {settings_.depth, settings_.depth - taken()}; }
  CreditRules credit_rules() const { return {settings_.depth, settings_.scheduler != "fifo"}; }
  std::uint32_t server_of(const Exchange& exchange) const;
  bool is_known(const Group& group) const;
  bool is_held_back(const Origin& origin) const;
  void hold_back(const Batch& batch);
  bool queue_again(const Origin& origin);
  void set_hanging_aside(Time now);
  Time hangs_at() const;
  Time beyond_depth_at() const;
  Batch take_any(Time now);
  void returned();

  const bool all_users_;
  Settings settings_;
  std::uint64_t stripe_size_;
  StripeMap stripes_;  // of files whose layout the file system does not report
  std::atomic<std::uint64_t> dirty_window_;
  Weights weights_;
  std::unique_ptr<UserQueue> scheduler_;
  Permits permits_;
  std::deque<Exchange*> chores_;
  std::vector<std::shared_ptr<OpenFile>> left_files_;
  std::uint32_t in_service_ = 0;  // without those that hang
  std::list<Service> services_;   // by their begin
  std::unordered_map<Origin, std::uint32_t> hanging_;
  std::unordered_map<Origin, std::vector<Exchange*>> held_back_;  // of origins whose calls hang
  Time returned_at_ = 0;                                          // a place
  std::uint64_t releases_ = 0;                                    // of permits, then
  Time held_until_ = 0;          // nothing is taken from the scheduler before
  std::uint32_t returning_ = 0;  // clients that are waited for
};

}  // namespace penstock
