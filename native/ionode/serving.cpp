// The I/O node's serving half: what the scheduler gives is called, accounted for and answered.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>

#include "node.hpp"

namespace penstock {
namespace {

// A request that waited longer is not begun before its client was seen to be there: what a killed
// process asked for must not overwrite what its successor wrote meanwhile.
constexpr Time doubtful_after = 20'000'000;
constexpr std::uint32_t long_chore = 30'000;

}  // namespace

void Node::end_service(const Lock& lock, Queues::Serving service) {
  if (queues_.end_service(lock, service, now()) && polling_) poke();
  if (draining_) changed_.notify_all();
}

// False if there is nothing to serve now.
bool Node::serve_next(Lock& lock) {
  if (Exchange* const chore = queues_.take_chore(lock)) {
    ++served_since_poll_;
    serve_chore(lock, *chore);
    return true;
  }
  if (auto file = queues_.take_left_file(lock)) {
    close_left_file(lock, std::move(file));
    return true;
  }
  const Batch batch = queues_.take(lock, now());
  if (batch.empty()) return false;
  served_since_poll_ += static_cast<std::uint32_t>(batch.size());
  if (batch.front()->permit) {
    grant(lock, batch);
  } else {
    serve_batch(lock, batch);
  }
  return true;
}

void Node::serve_batch(Lock& lock, const Batch& batch) {
  const bool is_long = long_to_serve(batch);
  is_long ? hand_over(lock) : expect_relief(lock);
  const auto service =
      queues_.begin_service(lock, static_cast<Exchange*>(batch.front())->connection->origin, now());
  lock.unlock();

  const Time began = now();
  const std::uint64_t window = queues_.dirty_window();
  const auto gone = [&](const Request* request) {
    return client_gone(static_cast<const Exchange&>(*request), began);
  };
  Batch dropped;
  if (std::any_of(batch.begin(), batch.end(), gone)) {
    for (Request* request : batch) {
      // What is left is no longer contiguous: each alone.
      if (gone(request)) {
        dropped.push_back(request);
      } else {
        serve(Batch(*request), window);
      }
    }
  } else {
    serve(batch, window);
  }
  const Time took = now() - began;
  static_cast<Exchange&>(*batch[0]).open_file->took(took);

  lock.lock();
  end_service(lock, service);
  queues_.served(lock, batch, began, took);
  ++counts_.batches;
  if (batch.size() > 1) counts_.aggregated += batch.size();
  for (Request* request : batch) {
    auto& exchange = static_cast<Exchange&>(*request);
    if (std::find(dropped.begin(), dropped.end(), request) != dropped.end()) {
      if (exchange.kind != Kind::sync) observer_.left(exchange.kind, 0, began + took);
      drop(exchange);
      continue;
    }
    account(exchange);
    if (exchange.kind != Kind::sync) {
      const auto moved = static_cast<std::uint64_t>(std::max<std::int64_t>(exchange.result, 0));
      observer_.left(exchange.kind, moved, began + took);
    }
    reply(lock, exchange);
  }
  if (draining_) changed_.notify_all();
}

void Node::serve_chore(Lock& lock, Exchange& exchange) {
  if (!exchange.answered) {
    usual_chore_ >= long_chore ? hand_over(lock) : expect_relief(lock);
    const auto service = queues_.begin_service(lock, exchange.connection->origin, now());
    const Time began = service->began;
    if (exchange.operation == PENSTOCK_OPEN) {
      open(lock, exchange);
    } else if (exchange.operation == PENSTOCK_CLOSE) {
      close_file(lock, exchange);
    } else {  // a transfer of no bytes, which is nothing to schedule
      lock.unlock();
      serve(Batch(exchange), 0);
      lock.lock();
    }
    end_service(lock, service);
    usual_chore_ = average(usual_chore_, now() - began);
  }
  account(exchange);
  reply(lock, exchange);
  if (draining_) changed_.notify_all();
}

void Node::open(Lock& lock, Exchange& exchange) {
  Connection& connection = *exchange.connection;
  const bool full = connection.session->full(sessions_.limits());
  lock.unlock();
  std::shared_ptr<OpenFile> file;
  Quota::Share share;
  if (!full) share = descriptors_->take(connection.origin);
  if (share) {
    file = open_file(exchange, roots_, numbers_, std::move(share));
  } else {
    exchange.result = -EMFILE;
  }
  lock.lock();
  if (file == nullptr) return;
  // Other connections of the session may have opened files meanwhile.
  if (connection.session->full(sessions_.limits())) {
    exchange.result = -EMFILE;
    queues_.add_left(lock, {std::move(file)});
    return;
  }
  exchange.result = connection.session->add(std::move(file));
}

void Node::close_file(Lock& lock, Exchange& exchange) {
  std::shared_ptr<OpenFile> file = exchange.connection->session->remove(exchange.handle);
  if (file == nullptr) {
    exchange.result = -EBADF;
    return;
  }
  lock.unlock();
  exchange.result = 0;
  // Calls under way on it keep the file; the last of them closes it.
  if (file.use_count() == 1) {
    file->drain();
    exchange.result = file->close();
  }
  file.reset();
  lock.lock();
}

// A file of a session that ended.
void Node::close_left_file(Lock& lock, std::shared_ptr<OpenFile> file) {
  usual_chore_ >= long_chore ? hand_over(lock) : expect_relief(lock);
  const auto service = queues_.begin_service(lock, file->origin(), now());
  lock.unlock();
  if (file.use_count() == 1) file->close();
  file.reset();
  lock.lock();
  end_service(lock, service);
}

bool Node::client_gone(const Exchange& exchange, Time now) const {
  const Connection& connection = *exchange.connection;
  if (connection.hung_up.load(std::memory_order_relaxed)) return true;
  if (now - exchange.doubtful_since < doubtful_after) return false;
  pollfd poll_socket{connection.descriptor, POLLRDHUP, 0};
  return ::poll(&poll_socket, 1, 0) > 0 &&
         (poll_socket.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

void Node::account(const Exchange& exchange) {
  ++counts_.requests;
  if (exchange.result < 0) {
    ++counts_.errors;
    return;
  }
  const auto moved = static_cast<std::uint64_t>(exchange.result);
  switch (exchange.operation) {
    case PENSTOCK_READ:
      ++counts_.reads;
      counts_.read_bytes += moved;
      break;
    case PENSTOCK_WRITE:
      ++counts_.writes;
      counts_.write_bytes += moved;
      break;
    case PENSTOCK_FSYNC:
    case PENSTOCK_FDATASYNC:
      ++counts_.syncs;
      return;
    default:
      return;
  }
  exchange.connection->group->bytes += moved;
}

void Node::drop(Exchange& exchange) {
  Connection& connection = *exchange.connection;
  ++counts_.dropped;
  release(connection);
  connection.phase = Phase::idle;
  connection.hung_up = true;
  doom(connection);
}

// The exchange is over: its connection takes the next request before the reply is on its way, for
// that request may come before this thread is back from sending.
void Node::reply(Lock& lock, Exchange& exchange) {
  Connection& connection = *exchange.connection;
  connection.reply = {PENSTOCK_WIRE_MAGIC, exchange.frame, exchange.result, 0, 0};
  if (exchange.operation == PENSTOCK_HELLO) {
    connection.reply.boot = boot_;
    connection.reply.node = options_.id;
  }
  const bool data = exchange.operation == PENSTOCK_READ && exchange.result > 0;
  ++connection.sending;
  if (data) {
    reply_with_payload(lock, connection);
    return;
  }
  const penstock_reply reply = connection.reply;
  std::shared_ptr<OpenFile> file = std::move(exchange.open_file);
  release(connection);
  connection.parser.next();
  connection.phase.store(Phase::idle, std::memory_order_release);
  lock.unlock();
  file.reset();
  const bool sent = connection.send(reply);
  lock.lock();
  --connection.sending;
  if (!sent || connection.doomed) doom(connection);
  if (draining_ && polling_) poke();
}

void Node::reply_with_payload(Lock& lock, Connection& connection) {
  connection.exchange.open_file.reset();
  connection.sent = 0;
  connection.to_send = sizeof connection.reply + static_cast<std::size_t>(connection.reply.result);
  connection.phase = Phase::replying;
  lock.unlock();
  const bool alive = send_rest(connection);
  lock.lock();
  --connection.sending;
  if (!alive || connection.sent == connection.to_send) {
    finish_reply(connection);
    if (!alive || connection.doomed) doom(connection);
    return;
  }
  connection.since = now();
  connection.unread = INT_MAX;
  connection.stalled = true;
  stalled_.push_back(&connection);
  epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = &connection}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.descriptor, &event);
  if (polling_) poke();  // for its deadline
}

// Sends what the socket takes; false if the peer is gone.
bool Node::send_rest(Connection& connection) {
  while (connection.sent < connection.to_send) {
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    const std::size_t head = sizeof connection.reply;
    if (connection.sent < head) {
      parts[count++] = {reinterpret_cast<std::byte*>(&connection.reply) + connection.sent,
                        head - connection.sent};
    }
    const std::size_t data = std::max(connection.sent, head) - head;
    parts[count++] = {connection.payload.data() + data, connection.to_send - head - data};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(connection.descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    connection.sent += static_cast<std::size_t>(sent);
  }
  return true;
}

// With the lock held: the data of a READ has gone out, or never will.
void Node::finish_reply(Connection& connection) {
  release(connection);
  connection.parser.next();
  connection.phase.store(Phase::idle, std::memory_order_release);
  if (connection.input_waits.exchange(false)) {
    resumed_.push_back(&connection);
    if (polling_) poke();
  }
}

// Memory that a request used.
void Node::release(Connection& connection) {
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
  if (polling_) poke();
}

}  // namespace penstock
