// Whose turn it is: the twin of penstock/manager.py.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine.hpp"

namespace penstock {

Engine::Group& Engine::group(std::int32_t r, std::int32_t g) {
  auto& groups = at(groups_, r);
  if (static_cast<std::size_t>(g) >= groups.size()) groups.resize(static_cast<std::size_t>(g) + 1);
  return groups[static_cast<std::size_t>(g)];
}

double Engine::turn(std::int32_t j) {
  switch (sharing_.order) {
    case Order::arrival:
      return 0.0;
    case Order::remaining_io:
      return remaining(j);
    case Order::yield: {
      const double lived = age(j);
      return lived > 0.0 ? progress(j) / lived : 1.0;
    }
    case Order::serial:
      return static_cast<double>(j);
    case Order::shortest_io:
      return at(jobs_, j).phase_io;
    case Order::longest_io:
      return -at(jobs_, j).phase_io;
    case Order::least_work_left:
      return work_left(j);
    case Order::most_work_left:
      return -work_left(j);
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

void Engine::request(std::int32_t item) {
  const Transfer& x = at(transfers_, item);
  const Job& job = at(jobs_, x.job);
  if (job.group == own_group) {
    to_admit_.push_back(item);
    return;
  }
  Group& mates = group(x.resource, job.group);
  const bool free = mates.waiting.empty() && mates.admitted.value() < 1.0;
  // A key matters only where there is someone to compare with.
  const bool alone = free && (!sharing_.preemptive || mates.holders.empty());
  const double key = alone || sharing_.dynamic ? 0.0 : turn(x.job);
  mates.waiting.push_back({key, job.arrival, x.job, item});
  std::push_heap(mates.waiting.begin(), mates.waiting.end(),
                 [](const Waiting& a, const Waiting& b) { return a.after(b); });
  if (free || sharing_.preemptive) choose(mates);
}

// Decides only; `act` carries it out once every resource of the event has decided, so that no
// decision sees another's effects.
void Engine::choose(Group& group) {
  const auto later = [](const Waiting& a, const Waiting& b) { return a.after(b); };
  auto& waiting = group.waiting;
  const bool rivals = sharing_.preemptive && group.holders.size() > 1;
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
    group.admitted.reset();
  }
  if (sharing_.dynamic && waiting.size() > 1) {
    for (Waiting& request : waiting) request.turn = turn(request.job);
    std::make_heap(waiting.begin(), waiting.end(), later);
  }
  while (!waiting.empty() && group.admitted.value() < 1.0) {
    std::pop_heap(waiting.begin(), waiting.end(), later);
    const Waiting next = waiting.back();
    waiting.pop_back();
    group.admitted.add(at(transfers_, next.item).max_share);
    if (sharing_.preemptive) {
      at(transfers_, next.item).chosen = true;
      group.holders.push_back(next);
    } else {
      to_admit_.push_back(next.item);
    }
  }
  if (!sharing_.preemptive) return;
  for (const Waiting& holder : held_) {
    if (!at(transfers_, holder.item).chosen) to_hold_.push_back(holder.item);
  }
  for (const Waiting& holder : group.holders) {
    if (!at(transfers_, holder.item).transferring()) to_admit_.push_back(holder.item);
  }
}

void Engine::act() {
  for (const std::int32_t item : to_hold_) resource_of(item).withdraw(item);
  for (const std::int32_t item : to_admit_) resource_of(item).admit(item);
  to_hold_.clear();
  to_admit_.clear();
}

}  // namespace penstock
