// The queue of an I/O node: users share it first, then each user's jobs share what the user has.
//
// A user has the largest weight of its jobs that have requests. So the weights that the controller
// gave hold between the jobs of different users, and who has many jobs has no more than with one.
// With a single user the order is that of the jobs alone.
//
// Users also share the places in service. Beyond its part a user has a place only as long as one
// stays free for each other active user that has less than its part: who holds places and moves
// nothing would have them all.

#pragma once

#include <limits>

#include "fair_queue.hpp"

namespace penstock {

class UserQueue final : public Scheduler {
 public:
  UserQueue(const Settings& settings, FairQueue::Make make)
      : users_(
            settings,
            [this, make = std::move(make)](const Settings& of_user) {
              return std::make_unique<FairQueue>(of_user, make, &Request::group, job_weights_);
            },
            &Request::user, user_weights_) {}
  UserQueue(const UserQueue&) = delete;
  UserQueue& operator=(const UserQueue&) = delete;

  void add(Request& request) override {
    request.number = ++added_;
    users_.add(request);
    weigh_user(request.user);
  }

  // Requests of a user this long ago make it active.
  static constexpr Time recently = 20'000'000;

  // Places in service: all of them, and those that are free.
  struct Places {
    std::uint32_t all;
    std::uint32_t free;
  };

  Batch take(Time now) override { return users_.take(now); }
  Batch take(Time now, const Places& places) {
    const Parts parts = this->parts(places.all, now);
    return users_.take_first([&](Scheduler& jobs, const FairQueue::Standing& user) {
      return parts.may_have_more(user, places) ? jobs.take(now) : Batch();
    });
  }
  // When to take, as far as it depends on time alone.
  Time ready_at(Time now, const Places& places) const {
    const Parts parts = this->parts(places.all, now);
    if (parts.users < 2) return users_.ready_at(now);
    Time first = never;
    users_.for_each_active(now, [&](const FairQueue::Standing& user, const Scheduler& jobs) {
      if (!user.waits) return;
      const Time ready = jobs.ready_at(now);
      first = std::min(first,
                       parts.may_have_more(user, places) ? ready : std::max(ready, parts.changes));
    });
    return first;
  }

  // How the active users share the places, by their weights.
  struct Parts {
    double places = 0;
    double weights = 0;
    std::uint32_t users = 0;
    std::uint32_t below = 0;  // have less than their parts
    bool wanted = false;      // one of these waits
    Time changes = never;     // when the first of these that has nothing is not active any more

    // At least one.
    std::uint32_t of(double weight) const {
      constexpr double rounding = 1e-9;
      if (users < 2) return static_cast<std::uint32_t>(places);
      return std::max(1u, static_cast<std::uint32_t>(places * weight / weights + rounding));
    }
    bool may_have_more(const FairQueue::Standing& user, const Places& now) const {
      return users < 2 || user.in_service < of(user.weight) || now.free > below;
    }
  };
  Parts parts(std::uint32_t places, Time now) const {
    Parts parts;
    parts.places = places;
    const Time since = now - std::min(now, recently);
    users_.for_each_active(since, [&](const FairQueue::Standing& user, const Scheduler&) {
      ++parts.users;
      parts.weights += user.weight;
    });
    if (parts.users < 2) return parts;
    users_.for_each_active(since, [&](const FairQueue::Standing& user, const Scheduler&) {
      if (user.in_service >= parts.of(user.weight)) return;
      ++parts.below;
      if (user.waits) parts.wanted = true;
      if (!user.waits && user.in_service == 0)
        parts.changes = std::min(parts.changes, user.last_request + recently + 1);
    });
    return parts;
  }
  double weight(std::uint64_t user) const { return users_.weight(user); }

  // Of users that have nothing in service, for a place beyond those there are; without such
  // a user, of jobs that have nothing.
  Batch take_of_unserved(Time now) {
    Batch batch = users_.take_of_unserved(now);
    if (!batch.empty()) return batch;
    return users_.take_first([now](Scheduler& jobs, const FairQueue::Standing&) {
      return static_cast<FairQueue&>(jobs).take_of_unserved(now);
    });
  }

  // Since when one of those waits, or never.
  Time unserved_since() const {
    Time since = users_.unserved_since();
    users_.for_each([&since](std::uint64_t, const Scheduler& jobs) {
      since = std::min(since, static_cast<const FairQueue&>(jobs).unserved_since());
    });
    return since;
  }

  // A batch that `take` returned, of this request's job, is no longer in service.
  void served(const Request& request) {
    users_.served(request.user);
    if (FairQueue* jobs = jobs_of(request.user)) jobs->served(request.group);
    weigh_user(request.user);
  }

  // More than one of a batch that `take` returned is in service by itself.
  void also_in_service(const Request& request, std::uint32_t batches) {
    users_.also_in_service(request.user, batches);
    if (FairQueue* jobs = jobs_of(request.user)) jobs->also_in_service(request.group, batches);
  }

  // What was taken costs its job, and its user, more or less than they were charged for.
  void charge(const Request& request, std::uint64_t bytes) {
    users_.charge(request.user, bytes);
    if (FairQueue* jobs = jobs_of(request.user)) jobs->charge(request.group, bytes);
  }
  void refund(const Request& request, std::uint64_t bytes) {
    users_.refund(request.user, bytes);
    if (FairQueue* jobs = jobs_of(request.user)) jobs->refund(request.group, bytes);
  }

  // A job's weight as a multiple of the smallest of those with requests since a time, within
  // reason.
  double relative_weight(const Request& request, Time since) const {
    constexpr double most = 16.0;
    const FairQueue* jobs = jobs_of(request.user);
    if (jobs == nullptr) return 1.0;
    const double weight = jobs->weight(request.group);
    double least = weight;
    users_.for_each([&least, since](std::uint64_t, const Scheduler& of_user) {
      least = std::min(least, static_cast<const FairQueue&>(of_user).least_weight(since));
    });
    return std::min(weight / least, most);
  }

  // Count the batches that another queue has in service: for a switch of schedulers.
  void take_over(const UserQueue& before) {
    users_.take_over(before.users_);
    before.users_.for_each([this](std::uint64_t user, const Scheduler& jobs) {
      if (FairQueue* here = jobs_of(user)) here->take_over(static_cast<const FairQueue&>(jobs));
      weigh_user(user);
    });
  }

  // Batches in service of a user's job.
  std::uint32_t in_service(std::uint64_t user, std::uint64_t job) const {
    const FairQueue* jobs = jobs_of(user);
    return jobs == nullptr ? 0 : jobs->in_service(job);
  }

  Time ready_at(Time now) const override { return users_.ready_at(now); }
  std::size_t size() const override { return users_.size(); }

  std::vector<Request*> drain() override { return users_.drain(); }

  // Set the weight of a user's job, from the next batch on. The default, 1, needs no memory.
  void weigh(std::uint64_t user, std::uint64_t job, double weight) {
    if (!(weight > 0) || weight > std::numeric_limits<double>::max()) {
      throw std::invalid_argument("a weight must be a number above zero");
    }
    set(job_weights_, job, weight);
    if (FairQueue* jobs = jobs_of(user)) jobs->reweigh(job);
    weigh_user(user);
  }

  // Jobs in memory: those backlogged or in service, and idle ones until the next sweep.
  std::size_t groups() const {
    std::size_t sum = 0;
    users_.for_each([&sum](std::uint64_t, const Scheduler& jobs) {
      sum += static_cast<const FairQueue&>(jobs).groups();
    });
    return sum;
  }

 private:
  static void set(FairQueue::Weights& weights, std::uint64_t id, double weight) {
    if (weight == 1.0) {
      weights.erase(id);
    } else {
      weights[id] = weight;
    }
  }

  FairQueue* jobs_of(std::uint64_t user) const {
    return static_cast<FairQueue*>(users_.scheduler_of(user));
  }

  void weigh_user(std::uint64_t user) {
    const FairQueue* jobs = jobs_of(user);
    const double weight = jobs == nullptr ? 1.0 : jobs->heaviest();
    if (weight == users_.weight(user)) return;
    set(user_weights_, user, weight);
    users_.reweigh(user);
  }

  FairQueue::Weights job_weights_;
  FairQueue::Weights user_weights_;
  FairQueue users_;
  std::uint64_t added_ = 0;
};

}  // namespace penstock
