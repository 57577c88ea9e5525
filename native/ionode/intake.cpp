// Bytes become frames, and replies that stalled go on.

#include "intake.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

namespace penstock {
namespace {

ssize_t receive(Connection& connection) {
  const std::span<std::byte> space = connection.parser.space();
  std::array<iovec, 2> parts{iovec{space.data(), space.size()},
                             iovec{connection.parser.spare(), 1}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = connection.parser.spare() == nullptr ? 1 : 2;
  return ::recvmsg(connection.descriptor, &message, MSG_DONTWAIT);
}

}  // namespace

Intake::Intake(Shared& shared, Queues& queues, Crew& crew, Epoll& epoll)
    : shared_(shared),
      queues_(queues),
      crew_(crew),
      epoll_(epoll),
      memory_(std::make_shared<Quota>(shared.options.limits.memory)) {}

Connection& Intake::let_in(const Lock&, int descriptor, const Origin& origin, Quota::Share share) {
  auto connection = std::make_unique<Connection>(descriptor, origin, std::move(share));
  Connection& here = *connection;
  connections_.emplace(&here, std::move(connection));
  return here;
}

void Intake::input(Connection& connection, std::uint32_t events) {
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
    const bool alive = connection.send_rest();
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

void Intake::resume(Connection& connection) {
  if (connection.phase.load(std::memory_order_acquire) == Phase::idle) read(connection);
}

void Intake::read(Connection& connection) {
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

// Memory for data, bounded for each job and each host: beyond, their sockets are not read.
Parser::Step Intake::place_payload(Connection& connection) {
  const std::uint64_t bytes = connection.parser.request().bytes;
  {
    const Lock lock(shared_.mutex);
    Group& group = *connection.group;
    Quota::Share share;
    if (group.payload == 0 || group.payload + bytes <= shared_.options.limits.payload)
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

void Intake::arrive(const Lock& lock, Time before, Time now) {
  for (const Arrival& arrival : arrivals_) arrive(lock, arrival, before, now);
  arrivals_.clear();
}

void Intake::arrive(const Lock& lock, const Arrival& arrival, Time before, Time now) {
  Connection& connection = *arrival.connection;
  switch (arrival.outcome) {
    case Outcome::frame:
      if (connection.doomed || connection.hung_up) {
        if (connection.hung_up) ++shared_.counts(lock).dropped;
        connection.phase = Phase::idle;
        doom(lock, connection);
      } else {
        begin(lock, connection, before, now);
      }
      break;
    case Outcome::wrong:
      ++shared_.counts(lock).refused;
      doom(lock, connection);
      break;
    case Outcome::gone:
      // The client has gone: the rest is not sent.
      if (connection.stalled) end_stall(lock, connection);
      // A client with another token does not go on.
      if (connection.parser.challenged() && !connection.doomed) ++shared_.counts(lock).refused;
      doom(lock, connection);
      break;
    case Outcome::early:
      if (connection.phase == Phase::replying) {
        connection.input_waits = true;
      } else {
        resumed_.push_back(&connection);
        crew_.poke(lock);
      }
      break;
    case Outcome::progress:
      connection.since = now;
      connection.unread = INT_MAX;
      break;
    case Outcome::sent:
      end_stall(lock, connection);
      if (connection.hung_up || connection.doomed) doom(lock, connection);
      break;
  }
}

void Intake::stall(const Lock& lock, Connection& connection) {
  connection.since = now();
  connection.unread = INT_MAX;
  connection.stalled = true;
  stalled_.push_back(&connection);
  epoll_.set_sending(connection.descriptor, connection, true);
  crew_.poke(lock);  // for its deadline
}

void Intake::end_stall(const Lock& lock, Connection& connection) {
  connection.stalled = false;
  stalled_.remove(&connection);
  epoll_.set_sending(connection.descriptor, connection, false);
  finish_reply(lock, connection);
}

void Intake::finish_reply(const Lock& lock, Connection& connection) {
  release(lock, connection);
  connection.parser.next();
  connection.phase.store(Phase::idle, std::memory_order_release);
  if (connection.input_waits.exchange(false)) {
    resumed_.push_back(&connection);
    crew_.poke(lock);
  }
}

void Intake::release(const Lock& lock, Connection& connection) {
  connection.exchange.open_file.reset();
  if (connection.payload_held == 0) return;
  connection.group->payload -= std::exchange(connection.payload_held, 0);
  connection.payload_share = {};
  payloads_.give_back(std::move(connection.payload));
  connection.payload = {};
  if (parked_.empty()) return;
  for (Connection* parked : parked_) {
    parked->parked = false;
    resumed_.push_back(parked);
  }
  parked_.clear();
  crew_.poke(lock);
}

void Intake::doom(const Lock& lock, Connection& connection) {
  connection.doomed = true;
  if (!connection.quiet() || connection.closing) return;
  connection.closing = true;
  doomed_.push_back(&connection);
  crew_.poke(lock);
}

void Intake::doom_all(const Lock& lock) {
  for (const auto& [connection, held] : connections_) doom(lock, *connection);
}

void Intake::close_doomed(Lock& lock) {
  if (doomed_.empty()) return;
  std::vector<std::unique_ptr<Connection>> closed;
  for (Connection* connection : std::exchange(doomed_, {})) {
    if (connection->session == nullptr) {
      shared_.strangers(lock).remove(*connection);
    } else {
      release(lock, *connection);
      queues_.add_left(lock,
                       shared_.sessions(lock).leave(*connection->session, *connection->group));
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
  if (connections_.empty()) shared_.changed.notify_all();
}

void Intake::expire(const Lock& lock, Time now) {
  std::vector<Connection*> late;
  for (Connection* connection : stalled_) {
    if (connection->since + shared_.options.patience > now) continue;
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
    ++shared_.counts(lock).refused;
    end_stall(lock, *connection);
    doom(lock, *connection);
  }
}

Time Intake::expires(const Lock&) const {
  Time until = never;
  for (const Connection* connection : stalled_)
    until = std::min(until, connection->since + shared_.options.patience);
  return until;
}

}  // namespace penstock
