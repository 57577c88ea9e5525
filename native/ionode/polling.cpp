// The I/O node's polling half: connections come and go, frames are read and queued. One thread at a
// time is in here, and it alone reads from connections and closes them.

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "node.hpp"

namespace penstock {
namespace {

constexpr Time identifies_within = 10'000'000'000;
constexpr int events_at_once = 64;
constexpr std::uint32_t interest = EPOLLIN | EPOLLRDHUP | EPOLLET;

int wait_for_events(int epoll, epoll_event* events, Time from, Time until) {
  if (until == never) return ::epoll_wait(epoll, events, events_at_once, -1);
  const Time left = until > from ? until - from : 0;
  const timespec timeout{static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
  const auto count =
      ::syscall(SYS_epoll_pwait2, epoll, events, events_at_once, &timeout, nullptr, 0);
  if (count >= 0 || errno != ENOSYS) return static_cast<int>(count);
  const Time milliseconds = std::min<Time>((left + 999'999) / 1'000'000, INT_MAX);
  return ::epoll_wait(epoll, events, events_at_once, static_cast<int>(milliseconds));
}

std::shared_ptr<const Identity> peer_identity(int descriptor) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return nullptr;
  auto identity = std::make_shared<Identity>(Identity{peer.uid, peer.gid, {}});
  identity->groups.resize(NGROUPS_MAX);
  length = static_cast<socklen_t>(identity->groups.size() * sizeof(gid_t));
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, identity->groups.data(), &length) != 0) {
    length = 0;
  }
  identity->groups.resize(length / sizeof(gid_t));
  identity->groups.shrink_to_fit();
  return identity;
}

}  // namespace

void Node::poll(Lock& lock) {
  polling_ = true;
  ++polls_;
  served_since_poll_ = 0;
  close_doomed(lock);
  const Time before = now();
  expire(before);
  poll_until_ = poll_deadline(before);
  const Time until = poll_until_;
  std::vector<Connection*> resumed = std::move(resumed_);
  resumed_.clear();
  lock.unlock();

  std::array<epoll_event, events_at_once> events;
  const int count = wait_for_events(epoll_, events.data(), before, resumed.empty() ? until : 0);
  const Time after = now();
  arrivals_.clear();
  for (int k = 0; k < count; ++k) {
    const epoll_event& event = events[static_cast<std::size_t>(k)];
    if (event.data.ptr == nullptr) {
      std::uint64_t pokes = 0;
      [[maybe_unused]] const ssize_t got = ::read(poke_, &pokes, sizeof pokes);
    } else if ((event.data.u64 & 1) != 0) {
      accept_clients(static_cast<int>(event.data.u64 >> 1));
    } else {
      input(*static_cast<Connection*>(event.data.ptr), event.events);
    }
  }
  // After what epoll reported, for it may have reported the same.
  for (Connection* connection : resumed) {
    if (connection->phase.load(std::memory_order_acquire) == Phase::idle) read(*connection);
  }

  lock.lock();
  for (const Arrival& arrival : arrivals_) {
    arrive(*arrival.connection, arrival.outcome, before, after);
  }
  polling_ = false;
  unattended_since_ = after;
}

Time Node::poll_deadline(Time now) const {
  const bool room = in_service_ < settings_.depth;
  if (room && (!chores_.empty() || !left_files_.empty())) return now;
  Time until = room ? scheduler_->ready_at(now) : never;
  if (until != never) until = std::max(until, held_until_);
  if (!unidentified_.empty()) {
    until = std::min(until, unidentified_.front()->since + identifies_within);
  }
  for (const Connection* connection : stalled_) {
    until = std::min(until, connection->since + options_.patience);
  }
  return until;
}

void Node::accept_clients(int listener) {
  for (;;) {
    const int descriptor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) return;
      // No descriptor left: turn one client away, lest it waits for ever.
      ::close(reserve_);
      const int refused = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (refused >= 0) ::close(refused);
      reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      const std::lock_guard lock(mutex_);
      ++counts_.refused;
      return;
    }
    welcome(listener, descriptor);
  }
}

void Node::welcome(int listener, int descriptor) {
  Lock lock(mutex_);
  const auto entry = listeners_.find(listener);
  const Transport transport = entry == listeners_.end() ? Transport::local : entry->second;
  std::shared_ptr<const Identity> identity = own_identity_;
  if (transport == Transport::tcp) {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  } else {
    identity = peer_identity(descriptor);
  }
  const bool known =
      identity != nullptr && (options_.all_users ? identity->uid != 0 : identity->uid == own_uid_);
  if (!known || draining_ || unidentified_.size() >= options_.limits.unidentified) {
    ++counts_.refused;
    ::close(descriptor);
    return;
  }
  auto connection = std::make_unique<Connection>(descriptor, transport, std::move(identity));
  connection->since = now();
  epoll_event event{interest, {.ptr = connection.get()}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    ++counts_.refused;
    return;
  }
  unidentified_.push_back(connection.get());
  connections_.emplace(connection.get(), std::move(connection));
}

// An event of a connection; without the lock.
void Node::input(Connection& connection, std::uint32_t events) {
  const Phase phase = connection.phase.load(std::memory_order_acquire);
  if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
    connection.hung_up = true;
    // Its last request is not begun, but counted.
    if (phase == Phase::idle) read(connection);
    arrivals_.push_back({&connection, Outcome::gone});
    return;
  }
  if (connection.stalled && (events & EPOLLOUT) != 0) {
    const std::size_t had = connection.sent;
    const bool alive = send_rest(connection);
    if (!alive) connection.hung_up = true;
    if (!alive || connection.sent == connection.to_send) {
      arrivals_.push_back({&connection, Outcome::sent});
    } else if (connection.sent > had) {
      arrivals_.push_back({&connection, Outcome::progress});
    }
  }
  if ((events & EPOLLIN) == 0) return;
  switch (phase) {
    case Phase::idle:
      read(connection);
      break;
    case Phase::busy:
      arrivals_.push_back({&connection, Outcome::wrong});
      break;
    case Phase::replying:
      arrivals_.push_back({&connection, Outcome::early});
      break;
  }
}

void Node::read(Connection& connection) {
  if (connection.parked) return;
  for (;;) {
    unsigned descriptors = 0;
    const ssize_t got = receive(connection, descriptors);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      connection.hung_up = true;
      arrivals_.push_back({&connection, Outcome::gone});
      return;
    }
    Parser::Step step = connection.parser.arrived(static_cast<std::size_t>(got), descriptors);
    if (connection.passed.size() > 1) step = Parser::Step::wrong;
    if (step == Parser::Step::payload) {
      step = place_payload(connection);
      if (connection.parked) return;
    }
    if (step == Parser::Step::more) continue;
    if (step == Parser::Step::frame) connection.phase.store(Phase::busy, std::memory_order_relaxed);
    arrivals_.push_back(
        {&connection, step == Parser::Step::frame ? Outcome::frame : Outcome::wrong});
    return;
  }
}

ssize_t Node::receive(Connection& connection, unsigned& descriptors) {
  const std::span<std::byte> space = connection.parser.space();
  std::array<iovec, 2> parts{iovec{space.data(), space.size()},
                             iovec{connection.parser.spare(), 1}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = connection.parser.spare() == nullptr ? 1 : 2;
  if (connection.transport == Transport::local) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  const ssize_t got = ::recvmsg(connection.descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 || message.msg_controllen == 0) return got;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t k = 0; k < count; ++k) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + k * sizeof(int), sizeof descriptor);
      connection.passed.push_back(descriptor);
      ++descriptors;
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && descriptors == 0) {
    connection.lost = true;
    ++descriptors;
  }
  return got;
}

// Memory for data over TCP, bounded for each job: beyond, its sockets are not read.
Parser::Step Node::place_payload(Connection& connection) {
  const std::uint64_t bytes = connection.parser.request().bytes;
  {
    const std::lock_guard lock(mutex_);
    Group& group = *connection.group;
    if (group.payload > 0 && group.payload + bytes > options_.limits.payload) {
      connection.parked = true;
      parked_.push_back(&connection);
      return Parser::Step::more;
    }
    group.payload += bytes;
    connection.payload_held = bytes;
  }
  connection.payload = payloads_.take();
  if (!connection.payload) return Parser::Step::wrong;
  return connection.parser.place(connection.payload.data());
}

// With the lock held, as all that follows.
void Node::arrive(Connection& connection, Outcome outcome, Time before, Time now) {
  switch (outcome) {
    case Outcome::frame:
      if (connection.doomed || connection.hung_up) {
        if (connection.hung_up) ++counts_.dropped;
        connection.phase = Phase::idle;
        doom(connection);
      } else {
        begin(connection, before, now);
      }
      break;
    case Outcome::wrong:
      ++counts_.refused;
      doom(connection);
      break;
    case Outcome::gone:
      // The client has gone: the rest is not sent.
      if (connection.stalled) end_stall(connection);
      doom(connection);
      break;
    case Outcome::early:
      if (connection.phase == Phase::replying) {
        connection.input_waits = true;
      } else {
        resumed_.push_back(&connection);
        poke();
      }
      break;
    case Outcome::progress:
      connection.since = now;
      connection.unread = INT_MAX;
      break;
    case Outcome::sent:
      end_stall(connection);
      if (connection.hung_up || connection.doomed) doom(connection);
      break;
  }
}

void Node::end_stall(Connection& connection) {
  connection.stalled = false;
  stalled_.remove(&connection);
  epoll_event event{interest, {.ptr = &connection}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.descriptor, &event);
  finish_reply(connection);
}

// To be closed as soon as no request of it is queued, in service or being answered.
void Node::doom(Connection& connection) {
  connection.doomed = true;
  if (!connection.quiet() || connection.closing) return;
  connection.closing = true;
  doomed_.push_back(&connection);
  if (polling_) poke();
}

void Node::close_doomed(Lock& lock) {
  if (draining_) {
    for (const auto& [connection, held] : connections_) doom(*connection);
  }
  if (doomed_.empty()) return;
  std::vector<std::unique_ptr<Connection>> closed;
  for (Connection* connection : std::exchange(doomed_, {})) {
    if (connection->session == nullptr) {
      unidentified_.remove(connection);
    } else {
      release(*connection);
      auto files = sessions_.leave(*connection->session, *connection->group);
      std::move(files.begin(), files.end(), std::back_inserter(left_files_));
    }
    parked_.remove(connection);
    std::erase(resumed_, connection);
    const auto entry = connections_.find(connection);
    closed.push_back(std::move(entry->second));
    connections_.erase(entry);
  }
  std::erase(left_files_, nullptr);
  lock.unlock();
  closed.clear();
  lock.lock();
  if (connections_.empty()) changed_.notify_all();
}

void Node::expire(Time now) {
  while (!unidentified_.empty() && unidentified_.front()->since + identifies_within <= now) {
    Connection& unidentified = *unidentified_.front();
    unidentified_.pop_front();
    ++counts_.refused;
    doom(unidentified);
  }
  std::vector<Connection*> late;
  for (Connection* connection : stalled_) {
    if (connection->since + options_.patience > now) continue;
    // A slow reader empties the socket's buffer long before there is room to send more.
    int unread = 0;
    ::ioctl(connection->descriptor, SIOCOUTQ, &unread);
    if (unread < connection->unread) {
      connection->since = now;
    } else {
      late.push_back(connection);
    }
    connection->unread = unread;
  }
  for (Connection* connection : late) {
    ++counts_.refused;
    end_stall(*connection);
    doom(*connection);
  }
}

}  // namespace penstock
