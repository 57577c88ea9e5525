// The I/O node and the clients of its host: what they ask, and what they have done.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "node.hpp"

namespace penstock {
namespace {

// Messages that are read of one client before the others have their turn.
constexpr int messages_at_once = 16;
// Group ids of the scheduler: of jobs that the controller has not named, one for each user.
constexpr std::uint64_t unnamed_jobs = std::uint64_t{1} << 62;
// File numbers of the scheduler: those of carried requests are small.
constexpr std::uint64_t permitted_files = std::uint64_t{1} << 63;

// One message. What is no message of ours, or brings a descriptor along, which the kernel closes,
// is of one byte.
ssize_t receive_message(int descriptor, penstock_permit_hello& into) {
  iovec part{&into, sizeof into};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t got = ::recvmsg(descriptor, &message, MSG_DONTWAIT);
  return got > 0 && (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 ? 1 : got;
}

}  // namespace

// An event of a client; without the lock.
void Node::read_messages(Caller& caller, std::uint32_t events) {
  for (int k = 0; k < messages_at_once; ++k) {
    Received received;
    received.caller = &caller;
    const ssize_t got = receive_message(caller.descriptor, received.hello);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    received.bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
    received_.push_back(received);
    if (received.bytes == 0) return;
  }
  if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) == 0) return;
  // What it said last is received first.
  std::byte more;
  if (::recv(caller.descriptor, &more, sizeof more, MSG_DONTWAIT | MSG_PEEK) > 0) return;
  Received gone;
  gone.caller = &caller;
  gone.bytes = 0;
  received_.push_back(gone);
}

// With the lock held, as all that follows.
void Node::act_upon(const Received& received, Time now) {
  Caller& caller = *received.caller;
  if (caller.descriptor < 0) return;
  if (caller.group == nullptr) {
    if (received.bytes != sizeof received.hello || !greet(caller, received.hello)) {
      if (received.bytes != 0) ++counts_.refused;
      doom(caller);
    }
    return;
  }
  const penstock_permit_message& message = received.message;
  if (received.bytes != sizeof message || message.permit >= PENSTOCK_PERMITS) {
    if (received.bytes != 0) ++counts_.refused;
    doom(caller);
    return;
  }
  Permit* const of_thread = caller.permit(message.permit, *permits_quota_);
  if (of_thread == nullptr) {
    ++counts_.refused;
    doom(caller);
    return;
  }
  Permit& permit = *of_thread;
  collect(permit);
  if (message.message == PENSTOCK_GIVE_BACK) {
    permits_.give_back(permit, message.number, *scheduler_, now);
  } else if (permits_.ask(permit, message, credit_rules(), *scheduler_, now)) {
    permit.group = share_of(*caller.group);
    permit.file = message.file | permitted_files;
    permit.server = stripes_.server(permit.offset) % settings_.servers;
    ++caller.queued;
    scheduler_->add(permit);
  }
}

bool Node::greet(Caller& caller, const penstock_permit_hello& hello) {
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
  weigh_group(*group);
  strangers_.remove_if([&](const Stranger& stranger) { return stranger.peer == &caller; });
  return true;
}

CreditRules Node::credit_rules() const { return {settings_.depth, settings_.scheduler != "fifo"}; }

// Where there are several users, a job has a share of its own only by a name that the controller
// gave out. A user's other jobs share as one, however many names they invent, and have no share
// beside a job that has one.
std::uint64_t Node::share_of(const Group& group) const {
  if (group.known) return group.id;
  std::uint64_t first = unnamed_jobs | group.uid;
  for (const auto& [key, other] : sessions_.groups()) {
    if (other->uid == group.uid && other->connections > 0 && other->known)
      first = std::min(first, other->id);
  }
  return first;
}

void Node::grant(const Batch& batch) {
  permits_.grant(batch, credit_rules(), *scheduler_, now());
  ++counts_.batches;
  if (batch.size() > 1) counts_.aggregated += batch.size();
  for (Request* request : batch) {
    Caller& caller = *static_cast<Permit&>(*request).caller;
    if (--caller.queued == 0 && caller.descriptor < 0) doomed_callers_.push_back(&caller);
  }
}

// What a thread has done since it was last looked at, as its page says.
void Node::collect(Permit& permit) {
  Caller& caller = *permit.caller;
  const Time now = penstock::now();
  permits_.collect(permit, [&](const Called& call) {
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

void Node::collect_all() {
  for (const auto& [caller, held] : callers_) {
    for (const auto& permit : caller->permits) {
      if (permit != nullptr) collect(*permit);
    }
  }
}

void Node::doom(Caller& caller) {
  if (caller.descriptor < 0) return;
  for (const auto& permit : caller.permits) {
    if (permit == nullptr) continue;
    collect(*permit);
    permits_.leave(*permit, *scheduler_, now());
  }
  if (caller.group == nullptr) {
    strangers_.remove_if([&](const Stranger& stranger) { return stranger.peer == &caller; });
  } else {
    sessions_.leave(*caller.group);
  }
  // The kernel takes it out of the epoll; events of this round may still name it.
  ::close(std::exchange(caller.descriptor, -1));
  if (caller.queued == 0) doomed_callers_.push_back(&caller);  // else `grant` does
  if (polling_) poke();
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
