// Whose turn it is: the twin of penstock/manager.py.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine.hpp"

namespace penstock {

namespace {

// A heap's order: the request that is served first is on top.
constexpr auto later = [](const auto& a, const auto& b) { return a.after(b); };

}  // namespace

// What is left of a phase by what is known of it. An overdue phase is taken to have a part of what
// it has done still to go.
double Engine::left(std::int32_t j) const {
  const double done = phase_done(j);
  const double known = expected(j);
  return std::max((std::isnan(known) ? sharing_.unknown : known) - done, sharing_.hedge * done);
}

double Engine::turn(std::int32_t j) {
  switch (sharing_.order) {
    case Order::arrival:
      return 0.0;
    case Order::least_left:
      return left(j);
    case Order::yield: {
      const double lived = age(j);
      return lived > 0.0 ? progress(j) / lived : 0.0;
    }
    case Order::serial:
      return static_cast<double>(j);
    case Order::shortest_io: {
      const double known = expected(j);
      return std::isnan(known) ? never : known;
    }
    case Order::longest_io: {
      const double known = expected(j);
      return std::isnan(known) ? never : -known;
    }
    case Order::least_work_left: {
      const double known = work_left(j);
      return std::isnan(known) ? never : known;
    }
    case Order::most_work_left: {
      const double known = work_left(j);
      return std::isnan(known) ? never : -known;
    }
    case Order::io_ratio: {
      const double lived = age(j);
      return lived > 0.0 ? io_done(j) / lived : 0.0;
    }
    case Order::host:
      break;
  }
  const double turn = host_->turn(j);
  if (std::isnan(turn)) throw std::invalid_argument("turn() returned NaN");
  return turn;
}

bool Engine::has_room(const Group& group) const {
  return group.admitted < sharing_.places || group.admitted_share.value() < 1.0;
}

void Engine::touch(std::int32_t r) {
  if (is_touched_[static_cast<std::size_t>(r)]) return;
  is_touched_[static_cast<std::size_t>(r)] = true;
  undecided_events_ = true;
  touched_.push_back(r);
}

void Engine::undecided(Group& group, std::int32_t r, std::int32_t g) {
  if (group.undecided) return;
  group.undecided = undecided_events_ = true;
  undecided_.push_back({r, g});
}

// A phase asks for all its resources.
void Engine::request(std::int32_t j) {
  Job& job = at(jobs_, j);
  if (sharing_.sampled) {
    const Sample sample = host_->sample(j);
    job.group = sample.group;
    job.weight = sample.weight;
  }
  for (std::int32_t k = 0; k < job.width; ++k) {
    const std::int32_t item = job.first + k;
    Transfer& x = at(transfers_, item);
    x.weight = job.weight;
    if (sharing_.reweighs) touch(x.resource);
    if (job.group == own_group) {
      to_admit_.push_back(item);
      continue;
    }
    Group& mates = group(x.resource, job.group);
    const Waiting request{0.0, job.arrival, j, item};
    if (requests_.size() == 1 && mates.idle()) {
      // Nobody to compare with: its key does not matter.
      admit(mates, request);
      if (sharing_.preemptive) to_admit_.push_back(item);
    } else if (!sharing_.preemptive && !has_room(mates)) {
      // All ends of this instant are known: it waits, whoever else comes.
      wait(mates, request);
    } else {
      mates.fresh.push_back(request);
      undecided(mates, x.resource, job.group);
    }
  }
}

// Decides first and acts then, so that no decision sees another's effects. Those that are held
// leave before others come: a resource's clock begins again when nobody shares it.
void Engine::decide() {
  if (sharing_.observes) sharing_.places = host_->places();
  for (const std::int32_t j : requests_) request(j);
  requests_.clear();
  for (const Place place : undecided_) {
    Group& mates = group(place.resource, place.group);
    mates.undecided = false;
    choose(mates);
  }
  undecided_.clear();
  if (sharing_.reweighs) reweigh();
  if (to_admit_.size() <= 1 && to_hold_.empty() && touched_.empty() && reweighed_.empty()) {
    // What most decisions come to: at most one transfer begins.
    for (const std::int32_t item : to_admit_) {
      const std::int32_t r = at(transfers_, item).resource;
      at(resources_, r).advance(now_);
      at(resources_, r).admit(item);
      settle(r);
    }
    to_admit_.clear();
    undecided_events_ = false;
    return;
  }
  for (const auto* items : {&to_hold_, &to_admit_, &reweighed_}) {
    for (const std::int32_t item : *items) touch(at(transfers_, item).resource);
  }
  for (const std::int32_t r : touched_) at(resources_, r).advance(now_);
  for (const std::int32_t item : to_hold_) resource_of(item).withdraw(item);
  for (const std::int32_t item : reweighed_) resource_of(item).withdraw(item);
  for (const std::int32_t item : to_admit_) resource_of(item).admit(item);
  for (const std::int32_t item : reweighed_) {
    at(transfers_, item).weight = at(transfers_, item).next_weight;
    resource_of(item).admit(item);
  }
  for (const std::int32_t r : touched_) {
    settle(r);
    is_touched_[static_cast<std::size_t>(r)] = false;
  }
  undecided_events_ = false;
  to_hold_.clear();
  to_admit_.clear();
  reweighed_.clear();
  touched_.clear();
}

void Engine::wait(Group& group, Waiting request) {
  if (!sharing_.dynamic) request.turn = turn(request.job);
  group.waiting.push_back(request);
  std::push_heap(group.waiting.begin(), group.waiting.end(), later);
}

// Gives a place to a request. Who of a preemptive group begins to transfer is known only once all
// its places are given.
void Engine::admit(Group& group, const Waiting& next) {
  group.admitted_share.add(workload_.max_share[static_cast<std::size_t>(next.job)]);
  ++group.admitted;
  if (sharing_.preemptive) {
    at(transfers_, next.item).chosen = true;
    group.holders.push_back(next);
  } else {
    to_admit_.push_back(next.item);
  }
}

void Engine::choose(Group& group) {
  auto& waiting = group.waiting;
  for (const Waiting& request : group.fresh) wait(group, request);
  group.fresh.clear();
  const bool rivals = sharing_.preemptive && (group.holders.size() > 1 || group.squeezed);
  if (waiting.empty() && !rivals) return;
  if (sharing_.preemptive) {
    held_ = group.holders;
    for (Waiting& holder : group.holders) {
      if (!sharing_.dynamic) holder.turn = turn(holder.job);
      at(transfers_, holder.item).chosen = false;
      waiting.push_back(holder);
      std::push_heap(waiting.begin(), waiting.end(), later);
    }
    group.holders.clear();
    group.admitted_share.reset();
    group.admitted = 0;
  }
  if (sharing_.dynamic && waiting.size() > 1) {
    for (Waiting& request : waiting) request.turn = turn(request.job);
    std::make_heap(waiting.begin(), waiting.end(), later);
  }
  while (!waiting.empty() && has_room(group)) {
    std::pop_heap(waiting.begin(), waiting.end(), later);
    const Waiting next = waiting.back();
    waiting.pop_back();
    admit(group, next);
  }
  if (!sharing_.preemptive) return;
  for (const Waiting& holder : held_) {
    if (!at(transfers_, holder.item).chosen) to_hold_.push_back(holder.item);
  }
  group.squeezed = sharing_.in_order && group.holders.size() > 1;
  for (const Waiting& holder : group.holders) {
    Transfer& x = at(transfers_, holder.item);
    const bool last = group.squeezed && holder.item == group.holders.back().item;
    const double weight = sharing_.in_order
                              ? at(jobs_, holder.job).weight * (last ? squeezed_weight : 1.0)
                              : x.weight;
    if (!x.transferring()) {
      x.weight = weight;
      to_admit_.push_back(holder.item);
    } else if (weight != x.weight) {
      x.next_weight = weight;
      reweighed_.push_back(holder.item);
    }
  }
}

// Asks for the weights of those that transfer on the resources of this instant's events. A new
// weight is as if the transfer had been held and admitted again.
void Engine::reweigh() {
  for (const std::int32_t item : to_admit_) {
    at(transfers_, item).weight = host_->weight(at(transfers_, item).job);
  }
  for (const std::int32_t r : touched_) {
    const std::size_t first = reweighed_.size();
    at(resources_, r).transferring(reweighed_);
    std::sort(reweighed_.begin() + static_cast<std::ptrdiff_t>(first), reweighed_.end(),
              [this](std::int32_t a, std::int32_t b) {
                return at(transfers_, a).job < at(transfers_, b).job;
              });
    is_touched_[static_cast<std::size_t>(r)] = false;
  }
  touched_.clear();
  std::erase_if(reweighed_, [this](std::int32_t item) {
    Transfer& x = at(transfers_, item);
    if (std::find(to_hold_.begin(), to_hold_.end(), item) != to_hold_.end()) return true;
    x.next_weight = host_->weight(x.job);
    return x.next_weight == x.weight;
  });
}

}  // namespace penstock
