#include "desk.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

// Of one user.
constexpr std::uint32_t calls_per_measurement = 8192;
// Of a user who sends more than a round may have.
constexpr Time pause_beside_others = 500'000;
// Group ids of the scheduler: of jobs that the controller has not named, one for each user.
constexpr std::uint64_t unnamed_jobs = std::uint64_t{1} << 62;
// File numbers of the scheduler: those of carried requests are small.
constexpr std::uint64_t permitted_files = std::uint64_t{1} << 63;

}  // namespace

Desk::Desk(Shared& shared, Queues& queues)
    : shared_(shared),
      queues_(queues),
      processes_(std::make_shared<Quota>(shared.options.limits.processes)),
      permits_(std::make_shared<Quota>(shared.options.limits.permits)) {}

void Desk::read(Time now) {
  rounds_.read(now,
               [](Caller& caller, CallerMessage& message) { return receive(caller, message); });
}

void Desk::act(const Lock& lock, Time now) {
  const Time pause = queues_.has_several_users(lock, now) ? pause_beside_others : 0;
  rounds_.act(now, pause, [&](const CallerMessage& said, std::uint32_t& budget) {
    return act_upon(lock, said, budget, now);
  });
}

Caller& Desk::let_in(const Lock&, int descriptor, uid_t uid, const Origin& origin,
                     Quota::Share share) {
  auto caller = std::make_unique<Caller>(descriptor, uid, origin, std::move(share));
  Caller& here = *caller;
  callers_.emplace(&here, std::move(caller));
  return here;
}

// False: its page has more calls than the budget.
bool Desk::act_upon(const Lock& lock, const CallerMessage& said, std::uint32_t& budget, Time now) {
  using What = CallerMessage::What;
  Caller& caller = *said.client;
  if (said.what == What::left) return part(lock, caller, budget);
  if (caller.leaving) return true;
  if (said.what == What::gone) {
    doom(lock, caller);
    return true;
  }
  if (caller.group == nullptr) {
    if (said.bytes != sizeof said.hello || !greet(lock, caller, said.hello)) refuse(lock, caller);
    return true;
  }
  const penstock_permit_message& message = said.message;
  if (said.bytes != sizeof message || message.permit >= PENSTOCK_PERMITS) {
    refuse(lock, caller);
    return true;
  }
  Permit* const permit = caller.permit(message.permit, *permits_);
  if (permit == nullptr) {
    refuse(lock, caller);
    return true;
  }
  if (!collect(lock, *permit, budget)) return false;
  if (message.message == PENSTOCK_GIVE_BACK) {
    queues_.give_back(lock, *permit, message.number, now);
  } else if (queues_.ask(lock, *permit, message, now)) {
    permit->group = share_of(lock, *caller.group);
    permit->file = message.file | permitted_files;
    ++caller.queued;
    queues_.add(lock, *permit);
  }
  return true;
}

bool Desk::greet(const Lock& lock, Caller& caller, const penstock_permit_hello& hello) {
  if (hello.magic != PENSTOCK_PERMIT_MAGIC) return false;
  caller.process = processes_->take(caller.origin);
  if (!caller.process) return false;
  SharedPage page = make_permit_page();
  if (page.descriptor < 0) return false;
  Group* group = shared_.sessions(lock).admit(hello.job, caller.uid, caller.origin);
  const bool welcome =
      group != nullptr && welcome_caller(caller.descriptor, shared_.options.id, page.descriptor);
  ::close(page.descriptor);
  if (!welcome) {
    if (group != nullptr) shared_.sessions(lock).leave(*group);
    return false;
  }
  caller.page = std::move(page.memory);
  caller.group = group;
  queues_.weigh(lock, *group, shared_.sessions(lock));
  shared_.strangers(lock).remove(caller);
  return true;
}

// Where there are several users, a job has a share of its own only by a name that the controller
// gave out. A user's other jobs share as one, however many names they invent, and have no share
// beside a job that has one.
std::uint64_t Desk::share_of(const Lock& lock, const Group& group) const {
  if (group.known) return group.id;
  return shared_.sessions(lock).first_known(group.uid).value_or(unnamed_jobs | group.uid);
}

void Desk::grant(const Lock& lock, const Batch& batch) {
  queues_.grant(lock, batch, now());
  ++shared_.counts(lock).batches;
  if (batch.size() > 1) shared_.counts(lock).aggregated += batch.size();
  for (Request* request : batch) {
    Caller& caller = *static_cast<Permit&>(*request).caller;
    if (--caller.queued == 0 && caller.descriptor < 0) doomed_.push_back(&caller);
  }
}

// What a thread has done since it was last looked at, as its page says. False: there is more than
// the budget.
bool Desk::collect(const Lock& lock, Permit& permit, std::uint32_t& budget) {
  Caller& caller = *permit.caller;
  const Time now = penstock::now();
  return Permits::collect(permit, budget, [&](const Called& call) {
    ++shared_.counts(lock).requests;
    if (call.kind == Kind::sync) {
      ++shared_.counts(lock).syncs;
      return;
    }
    const bool reads = call.kind == Kind::read;
    ++(reads ? shared_.counts(lock).reads : shared_.counts(lock).writes);
    (reads ? shared_.counts(lock).read_bytes : shared_.counts(lock).write_bytes) += call.bytes;
    caller.group->bytes += call.bytes;
    Request request;
    request.kind = call.kind;
    request.offset = call.offset;
    request.bytes = static_cast<std::uint32_t>(call.bytes);
    shared_.observer(lock).called(request, call.file, caller.stream(call.file), caller.observed,
                                  call.bytes, call.began, std::min(call.ended, now));
  });
}

void Desk::collect_all(const Lock& lock) {
  std::unordered_map<Origin, std::uint32_t> read;
  for (const auto& [caller, held] : callers_) {
    auto& budget = read.try_emplace(caller->origin, calls_per_measurement).first->second;
    for (const auto& permit : caller->permits) {
      if (permit != nullptr && budget > 0) collect(lock, *permit, budget);
    }
  }
}

void Desk::refuse(const Lock& lock, Caller& caller) {
  ++shared_.counts(lock).refused;
  doom(lock, caller);
}

void Desk::doom(const Lock& lock, Caller& caller) {
  if (std::exchange(caller.leaving, true)) return;
  if (caller.group == nullptr) {
    shared_.strangers(lock).remove(caller);
  }
  rounds_.stop(caller);
  CallerMessage last;
  last.client = &caller;
  last.what = CallerMessage::What::left;
  rounds_.add(last);
}

void Desk::doom_all(const Lock& lock) {
  for (const auto& [caller, held] : callers_) doom(lock, *caller);
}

bool Desk::part(const Lock& lock, Caller& caller, std::uint32_t& budget) {
  for (const auto& permit : caller.permits) {
    if (permit != nullptr && !collect(lock, *permit, budget)) return false;
  }
  for (const auto& permit : caller.permits) {
    if (permit != nullptr) queues_.leave(lock, *permit, now());
  }
  if (caller.group != nullptr) shared_.sessions(lock).leave(*caller.group);
  // The kernel takes it out of the epoll; events of this round may still name it.
  ::close(std::exchange(caller.descriptor, -1));
  if (caller.queued == 0) doomed_.push_back(&caller);  // else `grant` does
  return true;
}

// With a lock that is released meanwhile: pages are unmapped.
void Desk::close_doomed(Lock& lock) {
  if (doomed_.empty()) return;
  std::vector<std::unique_ptr<Caller>> closed;
  for (Caller* caller : std::exchange(doomed_, {})) {
    const auto entry = callers_.find(caller);
    closed.push_back(std::move(entry->second));
    callers_.erase(entry);
  }
  lock.unlock();
  closed.clear();
  lock.lock();
  if (callers_.empty()) shared_.changed.notify_all();
}

}  // namespace penstock
