// The I/O node and the clients of its host: what they ask, and what they have done.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "node.hpp"

namespace penstock {
namespace {

// Of one user.
constexpr std::uint32_t calls_per_measurement = 8192;
// Group ids of the scheduler: of jobs that the controller has not named, one for each user.
constexpr std::uint64_t unnamed_jobs = std::uint64_t{1} << 62;
// File numbers of the scheduler: those of carried requests are small.
constexpr std::uint64_t permitted_files = std::uint64_t{1} << 63;

}  // namespace

// With the lock held, as all that follows. False: its page has more calls than the budget.
bool Node::act_upon(const Lock& lock, const CallerMessage& said, std::uint32_t& budget, Time now) {
  using What = CallerMessage::What;
  Caller& caller = *said.client;
  if (said.what == What::left) return part(lock, caller, budget);
  if (caller.leaving) return true;
  if (said.what == What::gone) {
    doom(caller);
    return true;
  }
  if (caller.group == nullptr) {
    if (said.bytes != sizeof said.hello || !greet(lock, caller, said.hello)) refuse(caller);
    return true;
  }
  const penstock_permit_message& message = said.message;
  if (said.bytes != sizeof message || message.permit >= PENSTOCK_PERMITS) {
    refuse(caller);
    return true;
  }
  Permit* const permit = caller.permit(message.permit, *permits_quota_);
  if (permit == nullptr) {
    refuse(caller);
    return true;
  }
  if (!collect(*permit, budget)) return false;
  if (message.message == PENSTOCK_GIVE_BACK) {
    queues_.give_back(lock, *permit, message.number, now);
  } else if (queues_.ask(lock, *permit, message, now)) {
    permit->group = share_of(*caller.group);
    permit->file = message.file | permitted_files;
    ++caller.queued;
    queues_.add(lock, *permit);
  }
  return true;
}

bool Node::greet(const Lock& lock, Caller& caller, const penstock_permit_hello& hello) {
  if (hello.magic != PENSTOCK_PERMIT_MAGIC) return false;
  caller.process = processes_->take(caller.origin);
  if (!caller.process) return false;
  SharedPage page = make_permit_page();
  if (page.descriptor < 0) return false;
  Group* group = sessions_.admit(hello.job, caller.uid, caller.origin);
  const bool welcome =
      group != nullptr && welcome_caller(caller.descriptor, options_.id, page.descriptor);
  ::close(page.descriptor);
  if (!welcome) {
    if (group != nullptr) sessions_.leave(*group);
    return false;
  }
  caller.page = std::move(page.memory);
  caller.group = group;
  queues_.weigh(lock, *group, sessions_);
  strangers_.remove(caller);
  return true;
}

// Where there are several users, a job has a share of its own only by a name that the controller
// gave out. A user's other jobs share as one, however many names they invent, and have no share
// beside a job that has one.
std::uint64_t Node::share_of(const Group& group) const {
  if (group.known) return group.id;
  return sessions_.first_known(group.uid).value_or(unnamed_jobs | group.uid);
}

void Node::grant(const Lock& lock, const Batch& batch) {
  queues_.grant(lock, batch, now());
  ++counts_.batches;
  if (batch.size() > 1) counts_.aggregated += batch.size();
  for (Request* request : batch) {
    Caller& caller = *static_cast<Permit&>(*request).caller;
    if (--caller.queued == 0 && caller.descriptor < 0) doomed_callers_.push_back(&caller);
  }
}

// What a thread has done since it was last looked at, as its page says. False: there is more than
// the budget.
bool Node::collect(Permit& permit, std::uint32_t& budget) {
  Caller& caller = *permit.caller;
  const Time now = penstock::now();
  return Permits::collect(permit, budget, [&](const Called& call) {
    ++counts_.requests;
    if (call.kind == Kind::sync) {
      ++counts_.syncs;
      return;
    }
    const bool reads = call.kind == Kind::read;
    ++(reads ? counts_.reads : counts_.writes);
    (reads ? counts_.read_bytes : counts_.write_bytes) += call.bytes;
    caller.group->bytes += call.bytes;
    Request request;
    request.kind = call.kind;
    request.offset = call.offset;
    request.bytes = static_cast<std::uint32_t>(call.bytes);
    observer_.called(request, call.file, caller.stream(call.file), caller.observed, call.bytes,
                     call.began, std::min(call.ended, now));
  });
}

// For a measurement: of each user's calls as many as nobody notices. The others are known when
// their threads ask.
void Node::collect_all() {
  std::unordered_map<Origin, std::uint32_t> read;
  for (const auto& [caller, held] : callers_) {
    auto& budget = read.try_emplace(caller->origin, calls_per_measurement).first->second;
    for (const auto& permit : caller->permits) {
      if (permit != nullptr && budget > 0) collect(*permit, budget);
    }
  }
}

void Node::refuse(Caller& caller) {
  ++counts_.refused;
  doom(caller);
}

// It is not heard any more. Its threads' last calls are read when it is its user's turn: `part`.
void Node::doom(Caller& caller) {
  if (std::exchange(caller.leaving, true)) return;
  if (caller.group == nullptr) {
    strangers_.remove(caller);
  }
  rounds_.stop(caller);
  CallerMessage last;
  last.client = &caller;
  last.what = CallerMessage::What::left;
  rounds_.add(last);
}

bool Node::part(const Lock& lock, Caller& caller, std::uint32_t& budget) {
  for (const auto& permit : caller.permits) {
    if (permit != nullptr && !collect(*permit, budget)) return false;
  }
  for (const auto& permit : caller.permits) {
    if (permit != nullptr) queues_.leave(lock, *permit, now());
  }
  if (caller.group != nullptr) sessions_.leave(*caller.group);
  // The kernel takes it out of the epoll; events of this round may still name it.
  ::close(std::exchange(caller.descriptor, -1));
  if (caller.queued == 0) doomed_callers_.push_back(&caller);  // else `grant` does
  return true;
}

// With a lock that is released meanwhile: pages are unmapped.
void Node::close_doomed_callers(Lock& lock) {
  if (doomed_callers_.empty()) return;
  std::vector<std::unique_ptr<Caller>> closed;
  for (Caller* caller : std::exchange(doomed_callers_, {})) {
    const auto entry = callers_.find(caller);
    closed.push_back(std::move(entry->second));
    callers_.erase(entry);
  }
  lock.unlock();
  closed.clear();
  lock.lock();
  if (connections_.empty() && callers_.empty()) changed_.notify_all();
}

}  // namespace penstock
