#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace penstock {

namespace {

template <class T>
const T& at(std::span<const T> items, std::int64_t index) {
  return items[static_cast<std::size_t>(index)];
}

double& at(std::span<double> items, std::int64_t index) {
  return items[static_cast<std::size_t>(index)];
}

// At one instant releases come first, then phases begin (or end, if direct), each by job;
// then whoever asked to be woken. Ends of transfers come before all of these (`run`).
constexpr std::int32_t release_tie(std::int32_t j) {
  return j + std::numeric_limits<std::int32_t>::min();
}
constexpr std::int32_t wake_tie = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t no_job = -1;

}  // namespace

Engine::Engine(const Workload& workload, const Site& site, const Knowledge& knowledge,
               const Sharing& sharing, Host* host, std::span<const double> marks,
               bool keep_timeline, Record& record)
    : workload_(workload),
      site_(site),
      knowledge_(knowledge),
      sharing_(sharing),
      host_(host),
      record_(&record),
      marks_(marks),
      free_nodes_(site.nodes),
      unfinished_(workload.jobs()),
      jobs_(workload.release.size()),
      transfers_(workload.resources.size()),
      groups_(static_cast<std::size_t>(site.resources)),
      is_touched_(static_cast<std::size_t>(site.resources)) {
  const bool caps =
      site.work_conserving || std::any_of(workload.max_share.begin(), workload.max_share.end(),
                                          [](double share) { return share < 1.0; });
  resources_.reserve(static_cast<std::size_t>(site.resources));
  for (std::int32_t r = 0; r < site.resources; ++r) {
    resources_.emplace_back(transfers_, site.capacity, caps,
                            keep_timeline ? &record.timeline : nullptr);
  }
  winners_.assign(2 * std::bit_ceil(resources_.size()), -1);
  for (std::int32_t r = 0; r < site.resources; ++r) {
    winners_[winners_.size() / 2 + static_cast<std::size_t>(r)] = r;
  }
  for (std::size_t node = winners_.size() / 2 - 1; node > 0; --node) {
    winners_[node] = winners_[2 * node];
  }

  std::int32_t barriers = 0;
  for (std::int32_t j = 0; j < workload.jobs(); ++j) {
    Job& job = at(jobs_, j);
    job.iteration = penstock::at(workload.offsets, j);
    job.part = penstock::at(workload.part, j);
    job.max_share = penstock::at(workload.max_share, j) * job.part;
    job.group = penstock::at(sharing.group, j);
    job.weight = penstock::at(sharing.weight, j);
    job.first = static_cast<std::int32_t>(penstock::at(workload.resource_offsets, j));
    job.width =
        static_cast<std::int32_t>(penstock::at(workload.resource_offsets, j + 1)) - job.first;
    for (std::int32_t k = 0; k < job.width; ++k) {
      Transfer& x = at(transfers_, job.first + k);
      x.job = j;
      x.resource = penstock::at(workload.resources, job.first + k);
      x.max_share = job.max_share;
    }
    barriers = std::max(
        {barriers, penstock::at(workload.barrier, j) + 1, penstock::at(workload.after, j) + 1});
    calendar_.push({penstock::at(workload.release, j), release_tie(j), j});
  }
  barrier_open_jobs_.resize(static_cast<std::size_t>(barriers));
  behind_barrier_.resize(static_cast<std::size_t>(barriers));
  for (const std::int32_t barrier : workload.barrier) {
    if (barrier >= 0) ++at(barrier_open_jobs_, barrier);
  }
}

bool Engine::run(std::int64_t events) {
  for (; events > 0; --events) {
    const std::int32_t r = winners_[1];
    const double end = at(resources_, r).next_end();
    const bool transfer = end != never && (calendar_.empty() || end <= calendar_.top().key);
    const double next = transfer ? end : calendar_.empty() ? never : calendar_.top().key;
    // Everything that happens in one instant is heard before a choice is made.
    if (undecided_events_ && next > now_) {
      decide();
      continue;
    }
    if (mark_time() < next) {
      mark();
      continue;
    }
    if (transfer) {
      now_ = end;
      end_transfer(r);
      continue;
    }
    if (calendar_.empty()) return false;
    const auto event = calendar_.top();
    calendar_.pop();
    now_ = event.key;
    if (event.item == no_job) {
      // A policy that wakes itself for ever does not keep the site running.
      if (unfinished_ > 0) tell(JobEvent::woke, no_job);
    } else if (event.tie < 0) {
      release(event.item);
    } else if (at(jobs_, event.item).direct) {
      end_phase(event.item);
    } else {
      begin_io(event.item);
    }
  }
  return true;
}

// Between two events all transfers go on as they are, so that a mark changes nothing.
void Engine::mark() {
  now_ = std::max(now_, marks_[next_mark_]);
  const std::size_t jobs = jobs_.size();
  for (std::size_t j = 0; j < jobs; ++j) {
    record_->moved[next_mark_ * jobs + j] = in_phase(static_cast<std::int32_t>(j));
  }
  ++next_mark_;
}

void Engine::compute(std::int32_t j) {
  Job& job = at(jobs_, j);
  job.computing = true;
  job.computing_since = now_;
  calendar_.push({now_ + penstock::at(workload_.compute, job.iteration), j, j});
}

void Engine::release(std::int32_t j) {
  const std::int32_t barrier = penstock::at(workload_.after, j);
  if (barrier >= 0 && at(barrier_open_jobs_, barrier) > 0) {
    at(behind_barrier_, barrier).push_back(j);
    return;
  }
  queue_.push_back(j);
  start_queued();
}

void Engine::start_queued() {
  while (!queue_.empty()) {
    const std::int32_t j = queue_.front();
    if (site_.nodes > 0) {
      if (penstock::at(workload_.nodes, j) > free_nodes_) return;
      free_nodes_ -= penstock::at(workload_.nodes, j);
    }
    queue_.pop_front();
    start(j);
  }
}

void Engine::start(std::int32_t j) {
  Job& job = at(jobs_, j);
  job.started = now_;
  penstock::at(record_->start, j) = now_;
  tell(JobEvent::started, j);
  compute(j);
}

void Engine::next_iteration(std::int32_t j) {
  Job& job = at(jobs_, j);
  penstock::at(record_->end, job.iteration) = now_;
  ++record_->phase_ends;
  if (++job.iteration == penstock::at(workload_.offsets, j + 1)) {
    end_job(j);
  } else {
    compute(j);
  }
}

void Engine::end_job(std::int32_t j) {
  --unfinished_;
  if (site_.nodes > 0) free_nodes_ += penstock::at(workload_.nodes, j);
  tell(JobEvent::ended, j);
  const std::int32_t barrier = penstock::at(workload_.barrier, j);
  if (barrier >= 0 && --at(barrier_open_jobs_, barrier) == 0) {
    for (const std::int32_t next : at(behind_barrier_, barrier)) queue_.push_back(next);
    at(behind_barrier_, barrier).clear();
  }
  start_queued();
}

void Engine::tell(JobEvent event, std::int32_t j) {
  if (host_ == nullptr) return;
  decision_.assignments.clear();
  decision_.wake_at.clear();
  host_->on_job(event, j, decision_);
  for (Assignment& assignment : decision_.assignments) {
    at(jobs_, assignment.job).assignment = static_cast<std::int32_t>(assignments_.size());
    assignments_.push_back(std::move(assignment));
  }
  for (const double time : decision_.wake_at) wake_at(time);
  if (event == JobEvent::woke && sharing_.observes) {
    for (std::int32_t r = 0; r < site_.resources; ++r) {
      if (sharing_.reweighs) touch(r);
      const auto groups = static_cast<std::int32_t>(at(groups_, r).size());
      for (std::int32_t g = 0; g < groups; ++g) undecided(group(r, g), r, g);
    }
  }
}

void Engine::wake_at(double time) {
  if (time != never) calendar_.push({std::max(time, now_), wake_tie, no_job});
}

// A new set of resources takes effect between two phases; a wider one gets new transfers.
void Engine::take_assignment(Job& job, std::int32_t j) {
  const Assignment& assignment = at(assignments_, job.assignment);
  const auto width = static_cast<std::int32_t>(assignment.resources.size());
  if (width > job.width) {
    job.first = static_cast<std::int32_t>(transfers_.size());
    transfers_.resize(transfers_.size() + assignment.resources.size());
  }
  job.width = width;
  job.scale = assignment.scale;
  job.part = assignment.part;
  job.max_share = penstock::at(workload_.max_share, j) * job.part;
  job.assignment = -1;
  for (std::int32_t k = 0; k < width; ++k) {
    Transfer& x = at(transfers_, job.first + k);
    x.job = j;
    x.resource = at(assignment.resources, k);
    x.max_share = job.max_share;
  }
}

void Engine::begin_io(std::int32_t j) {
  Job& job = at(jobs_, j);
  ++record_->phase_ends;
  penstock::at(record_->request, job.iteration) = now_;
  job.computing = false;
  job.done += penstock::at(workload_.compute, job.iteration);
  if (job.assignment >= 0) take_assignment(job, j);
  job.phase_io = penstock::at(workload_.io, job.iteration) * job.scale * job.part;
  job.arrival = now_;
  if (job.phase_io == 0.0) {
    next_iteration(j);
    return;
  }
  // A direct phase competes with no other: the end is known, and waits in the calendar.
  job.direct = job.width == 0;
  job.pending = job.direct ? 1 : job.width;
  if (job.direct) calendar_.push({now_ + job.phase_io / job.max_share, j, j});
  for (std::int32_t k = 0; k < job.width; ++k) {
    Transfer& x = at(transfers_, job.first + k);
    x.remaining = job.phase_io;
    x.state = Transfer::State::waiting;
  }
  if (host_ != nullptr) wake_at(host_->requested(j));
  if (!job.direct) {
    requests_.push_back(j);
    undecided_events_ = true;
  }
}

void Engine::end_transfer(std::int32_t r) {
  Resource& resource = at(resources_, r);
  const std::int32_t item = resource.next_item();
  resource.finish(item, now_);
  const std::int32_t j = at(transfers_, item).job;
  Job& job = at(jobs_, j);
  if (job.group != own_group) {
    Group& mates = group(r, job.group);
    if (sharing_.preemptive) {
      std::erase_if(mates.holders, [item](const Waiting& holder) { return holder.item == item; });
    }
    mates.admitted_share.add(-penstock::at(workload_.max_share, j));
    --mates.admitted;
    // Who asks later in this instant says so; else there is a choice only if somebody waits.
    if (!mates.waiting.empty() || mates.holders.size() > 1 || mates.squeezed) {
      undecided(mates, r, job.group);
    }
  }
  if (sharing_.reweighs) touch(r);
  // Others may end on this resource in the same instant.
  settle(r);
  if (job.pending == 1) {
    end_phase(j, r);
  } else {
    --job.pending;
    if (host_ != nullptr) wake_at(host_->ended(j, r, job.phase_io / job.max_share, false));
  }
}

void Engine::end_phase(std::int32_t j, std::int32_t r) {
  Job& job = at(jobs_, j);
  job.pending = 0;
  job.direct = false;
  const double io =
      penstock::at(workload_.io, job.iteration) / penstock::at(workload_.max_share, j);
  job.done += io;
  job.io_done += io;
  job.phases_io += job.phase_io / job.max_share;
  ++job.phases;
  if (host_ != nullptr) wake_at(host_->ended(j, r, job.phase_io / job.max_share, true));
  next_iteration(j);
}

double Engine::remaining(std::int32_t j) const {
  const Job& job = at(jobs_, j);
  double most = 0.0;
  for (std::int32_t k = 0; k < job.width; ++k) {
    const Transfer& x = at(transfers_, job.first + k);
    most = std::max(most, at(resources_, x.resource).remaining(x, now_));
  }
  return most;
}

double Engine::phase_done(std::int32_t j) const {
  const Job& job = at(jobs_, j);
  if (job.pending == 0) return 0.0;
  if (job.direct) return now_ - job.arrival;
  return std::max(0.0, job.phase_io - remaining(j)) / job.max_share;  // but for rounding
}

double Engine::in_phase(std::int32_t j) const { return phase_done(j) / at(jobs_, j).scale; }

double Engine::progress(std::int32_t j) const {
  const Job& job = at(jobs_, j);
  return job.done + (job.computing ? now_ - job.computing_since : in_phase(j));
}

double Engine::work_left(std::int32_t j) const {
  if (knowledge_.learned) return std::numeric_limits<double>::quiet_NaN();
  return penstock::at(workload_.work, j) * penstock::at(knowledge_.factor, j) - progress(j);
}

double Engine::expected(std::int32_t j) const {
  const Job& job = at(jobs_, j);
  if (knowledge_.learned) {
    return job.phases == 0 ? std::numeric_limits<double>::quiet_NaN()
                           : job.phases_io / static_cast<double>(job.phases);
  }
  return job.phase_io / job.max_share * penstock::at(knowledge_.factor, j);
}

void Engine::settle(std::int32_t r) {
  at(resources_, r).settle();
  for (std::size_t node = (winners_.size() / 2 + static_cast<std::size_t>(r)) / 2; node > 0;
       node /= 2) {
    const std::int32_t left = winners_[2 * node];
    const std::int32_t right = winners_[2 * node + 1];
    if (right < 0) {
      winners_[node] = left;
      continue;
    }
    const Resource& a = at(resources_, left);
    const Resource& b = at(resources_, right);
    const bool right_first = b.next_end() < a.next_end() ||
                             (b.next_end() == a.next_end() && b.next_job() < a.next_job());
    winners_[node] = right_first ? right : left;
  }
}

}  // namespace penstock
