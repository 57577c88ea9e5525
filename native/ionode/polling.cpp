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

constexpr int events_at_once = 256;
// Clients that are let in before those that were let in are read: who says at once who it is was
// read before as many strangers as one origin may have came behind it.
constexpr int accepted_at_once = 16;
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

Origin origin_of_user(uid_t uid) {
  Origin origin;
  origin.name[0] = std::byte{1};
  std::memcpy(origin.name.data() + 1, &uid, sizeof uid);
  return origin;
}

Origin origin_of_address(const sockaddr_storage& address) {
  Origin origin;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    origin.name[0] = std::byte{4};
    std::memcpy(origin.name.data() + 1, &four.sin_addr, sizeof four.sin_addr);
  } else if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    origin.name[0] = std::byte{6};
    std::memcpy(origin.name.data() + 1, &six.sin6_addr, origin.name.size() - 1);
  }
  return origin;
}

}  // namespace

void Node::poll(Lock& lock) {
  polling_ = true;
  ++polls_;
  served_since_poll_ = 0;
  close_doomed(lock);
  close_doomed_callers(lock);
  const Time before = now();
  expire(before);
  queues_.make_room(lock, before);
  poll_until_ = poll_deadline(lock, before);
  const Time until = poll_until_;
  std::vector<Connection*> resumed = std::move(resumed_);
  resumed_.clear();
  lock.unlock();

  std::array<epoll_event, events_at_once> events;
  const bool more = !resumed.empty() || !rounds_.empty();
  const int count = wait_for_events(epoll_, events.data(), before, more ? 0 : until);
  const Time after = now();
  arrivals_.clear();
  for (int k = 0; k < count; ++k) {
    const epoll_event& event = events[static_cast<std::size_t>(k)];
    if (event.data.ptr == nullptr) {
      std::uint64_t pokes = 0;
      [[maybe_unused]] const ssize_t got = ::read(poke_, &pokes, sizeof pokes);
    } else if ((event.data.u64 & 1) != 0) {
      accept_clients(static_cast<int>(event.data.u64 >> 1));
    } else if (auto* peer = static_cast<Peer*>(event.data.ptr);
               peer->transport == Transport::local) {
      if (auto& caller = static_cast<Caller&>(*peer); !caller.leaving) rounds_.add(caller);
    } else {
      input(static_cast<Connection&>(*peer), event.events);
    }
  }
  // After what epoll reported, for it may have reported the same.
  for (Connection* connection : resumed) {
    if (connection->phase.load(std::memory_order_acquire) == Phase::idle) read(*connection);
  }
  rounds_.read(
      [](Caller& caller, CallerMessage& message) { return penstock::receive(caller, message); });

  lock.lock();
  for (const Arrival& arrival : arrivals_) {
    arrive(lock, *arrival.connection, arrival.outcome, before, after);
  }
  rounds_.act([&](const CallerMessage& said, std::uint32_t& budget) {
    return act_upon(lock, said, budget, after);
  });
  polling_ = false;
  unattended_since_ = after;
}

Time Node::poll_deadline(const Lock& lock, Time now) const {
  Time until = std::min(queues_.deadline(lock, now), strangers_.expires());
  for (const Connection* connection : stalled_) {
    until = std::min(until, connection->since + options_.patience);
  }
  return until;
}

void Node::accept_clients(int listener) {
  for (int k = 0; k < accepted_at_once; ++k) {
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
  const bool local = entry == listeners_.end() || entry->second == Transport::local;
  Origin origin;
  uid_t uid = own_uid_;
  bool known = !draining_;
  if (local) {
    known = known && peer_user(descriptor, uid);
    uid = owner_of(uid);
    known = known && (options_.all_users || uid == own_uid_);
    origin = origin_of_user(uid);
  } else {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
    origin = origin_of_address(address);
  }
  Quota::Share share;
  if (known) share = descriptors_->take(origin);
  if (!share) {
    ++counts_.refused;
    ::close(descriptor);
    return;
  }
  Peer* peer = nullptr;
  if (local) {
    auto caller = std::make_unique<Caller>(descriptor, uid, origin, std::move(share));
    peer = caller.get();
    callers_.emplace(caller.get(), std::move(caller));
  } else {
    auto connection = std::make_unique<Connection>(descriptor, origin, std::move(share));
    peer = connection.get();
    connections_.emplace(connection.get(), std::move(connection));
  }
  if (Peer* const gives_way = strangers_.add(*peer, origin, now())) {
    ++counts_.refused;
    doom(*gives_way);
  }
  epoll_event event{interest, {.ptr = peer}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    ++counts_.refused;
    doom(*peer);
  }
}

// Who has subordinate ids has one user's part with all of them.
uid_t Node::owner_of(uid_t uid) const {
  for (const SubordinateIds& ids : subordinate_ids_) {
    if (uid >= ids.first && uid - ids.first < ids.count) return ids.owner;
  }
  return uid;
}

void Node::doom(Peer& peer) {
  if (peer.transport == Transport::local) {
    doom(static_cast<Caller&>(peer));
  } else {
    doom(static_cast<Connection&>(peer));
  }
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
    const ssize_t got = receive(connection);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      connection.hung_up = true;
      arrivals_.push_back({&connection, Outcome::gone});
      return;
    }
    Parser::Step step = connection.parser.arrived(static_cast<std::size_t>(got));
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

ssize_t Node::receive(Connection& connection) {
  const std::span<std::byte> space = connection.parser.space();
  std::array<iovec, 2> parts{iovec{space.data(), space.size()},
                             iovec{connection.parser.spare(), 1}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = connection.parser.spare() == nullptr ? 1 : 2;
  return ::recvmsg(connection.descriptor, &message, MSG_DONTWAIT);
}

// Memory for data, bounded for each job and each host: beyond, their sockets are not read.
Parser::Step Node::place_payload(Connection& connection) {
  const std::uint64_t bytes = connection.parser.request().bytes;
  {
    const std::lock_guard lock(mutex_);
    Group& group = *connection.group;
    Quota::Share share;
    if (group.payload == 0 || group.payload + bytes <= options_.limits.payload)
      share = memory_->take(connection.origin, bytes);
    if (!share) {
      connection.parked = true;
      parked_.push_back(&connection);
      return Parser::Step::more;
    }
    group.payload += bytes;
    connection.payload_held = bytes;
    connection.payload_share = std::move(share);
  }
  connection.payload = payloads_.take();
  if (!connection.payload) return Parser::Step::wrong;
  return connection.parser.place(connection.payload.data());
}

// With the lock held, as all that follows.
void Node::arrive(const Lock& lock, Connection& connection, Outcome outcome, Time before,
                  Time now) {
  switch (outcome) {
    case Outcome::frame:
      if (connection.doomed || connection.hung_up) {
        if (connection.hung_up) ++counts_.dropped;
        connection.phase = Phase::idle;
        doom(connection);
      } else {
        begin(lock, connection, before, now);
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
    for (const auto& [caller, held] : callers_) doom(*caller);
  }
  if (doomed_.empty()) return;
  std::vector<std::unique_ptr<Connection>> closed;
  for (Connection* connection : std::exchange(doomed_, {})) {
    if (connection->session == nullptr) {
      strangers_.remove(*connection);
    } else {
      release(*connection);
      queues_.add_left(lock, sessions_.leave(*connection->session, *connection->group));
    }
    parked_.remove(connection);
    std::erase(resumed_, connection);
    const auto entry = connections_.find(connection);
    closed.push_back(std::move(entry->second));
    connections_.erase(entry);
  }
  lock.unlock();
  closed.clear();
  lock.lock();
  if (connections_.empty() && callers_.empty()) changed_.notify_all();
}

void Node::expire(Time now) {
  while (Peer* const stranger = strangers_.take_expired(now)) {
    ++counts_.refused;
    doom(*stranger);
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
