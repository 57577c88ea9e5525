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
// A call that took so long is worth a wait for those it served, of an eighth of that and at most
// this.
constexpr Time worth_holding = 200'000;
constexpr Time longest_hold = 500'000;
// With places that are not given back, and how many times the places there are may be in service.
constexpr Time patience_with_places = 250'000'000;
constexpr std::uint64_t beyond_depth = 4;

// Schedulers that put requests of a file together whatever the time.
bool anticipates(const std::string& scheduler) {
  return scheduler != "fifo" && !scheduler.starts_with("twins");
}

}  // namespace

// Clients whose requests were served together come back at about the same time, with requests that
// continue them. Where a call is dear, they are waited for: else those that came meanwhile are
// served first and alone, and the two halves never meet again.
void Node::returned() {
  if (returning_ > 0 && --returning_ == 0) held_until_ = 0;
}

// A call has a place in service until it returns or hangs. What its origin asks for besides waits
// as soon as as many of its calls hang as there are places: the threads that it keeps are bounded.
std::list<Node::Service>::iterator Node::begin_service(const Origin& origin) {
  ++in_service_;
  return services_.insert(services_.end(), {origin, now()});
}

void Node::end_service(std::list<Service>::iterator service) {
  returned_at_ = now();
  if (service->hangs) {
    const auto of_origin = hanging_.find(service->origin);
    if (--of_origin->second == 0) hanging_.erase(of_origin);
    queue_again(service->origin);
  } else {
    --in_service_;
  }
  services_.erase(service);
  if (draining_) changed_.notify_all();
}

bool Node::is_held_back(const Origin& origin) const {
  const auto of_origin = hanging_.find(origin);
  return of_origin != hanging_.end() && of_origin->second >= settings_.depth;
}

void Node::hold_back(const Batch& batch) {
  scheduler_->served(*batch.front());
  for (Request* request : batch) {
    auto& exchange = static_cast<Exchange&>(*request);
    held_back_[exchange.connection->origin].push_back(&exchange);
  }
}

void Node::queue_again(const Origin& origin) {
  const auto of_origin = held_back_.find(origin);
  if (of_origin == held_back_.end()) return;
  for (Exchange* exchange : std::exchange(of_origin->second, {})) {
    if (exchange->open_file == nullptr) {
      chores_.push_back(exchange);
    } else {
      exchange->server = server_of(*exchange);
      scheduler_->add(*exchange);
    }
  }
  held_back_.erase(of_origin);
  if (polling_) poke();
}

void Node::set_hanging_aside(Time now) {
  if (hangs_at() > now) return;
  for (Service& service : services_) {
    if (service.hangs || service.began + Permits::hangs_after > now) continue;
    service.hangs = true;
    --in_service_;
    ++hanging_[service.origin];
  }
}

Time Node::hangs_at() const {
  if (has_room() || (scheduler_->size() == 0 && chores_.empty() && left_files_.empty()))
    return never;
  const auto first = std::find_if(services_.begin(), services_.end(),
                                  [](const Service& service) { return !service.hangs; });
  return first == services_.end() ? never : first->began + Permits::hangs_after;
}

// All places are taken, and none was given back for some time: a job that has none gets one more.
// Until those that do not come back are known to hang, nobody waits for them any longer.
Time Node::beyond_depth_at() const {
  if (scheduler_->size() == 0 || in_service_ + permits_.held() >= beyond_depth * settings_.depth)
    return never;
  const Time since = scheduler_->unserved_since();
  return since == never ? never : std::max(since, returned_at_) + patience_with_places;
}

Batch Node::take(Time now) {
  if (now < held_until_) return {};
  if (has_room()) return scheduler_->take(now, places());
  return beyond_depth_at() <= now ? scheduler_->take_of_unserved(now) : Batch();
}

// With the lock held; false if there is nothing to serve now.
bool Node::serve_next(Lock& lock) {
  if (!chores_.empty() && (has_room() || chores_.front()->answered)) {
    Exchange& exchange = *chores_.front();
    chores_.pop_front();
    ++served_since_poll_;
    if (!exchange.answered && is_held_back(exchange.connection->origin)) {
      held_back_[exchange.connection->origin].push_back(&exchange);
    } else {
      serve_chore(lock, exchange);
    }
    return true;
  }
  if (!left_files_.empty() && has_room()) {
    close_left_file(lock);
    return true;
  }
  const Batch batch = take(now());
  if (batch.empty()) return false;
  served_since_poll_ += static_cast<std::uint32_t>(batch.size());
  if (batch.front()->permit) {
    grant(batch);
  } else if (is_held_back(static_cast<Exchange*>(batch.front())->connection->origin)) {
    hold_back(batch);
  } else {
    serve_batch(lock, batch);
  }
  return true;
}

void Node::serve_batch(Lock& lock, const Batch& batch) {
  const bool is_long = long_to_serve(batch);
  is_long ? hand_over() : expect_relief();
  const auto service = begin_service(static_cast<Exchange*>(batch.front())->connection->origin);
  lock.unlock();

  const Time began = now();
  const std::uint64_t window = dirty_window_.load(std::memory_order_relaxed);
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
  end_service(service);
  scheduler_->served(*batch[0]);
  if (took >= worth_holding && anticipates(settings_.scheduler)) {
    held_until_ = began + took + std::min<Time>(took / 8, longest_hold);
    returning_ = static_cast<std::uint32_t>(batch.size());
  }
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
    usual_chore_ >= long_chore ? hand_over() : expect_relief();
    const auto service = begin_service(exchange.connection->origin);
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
    end_service(service);
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
    left_files_.push_back(std::move(file));
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
void Node::close_left_file(Lock& lock) {
  std::shared_ptr<OpenFile> file = std::move(left_files_.back());
  left_files_.pop_back();
  usual_chore_ >= long_chore ? hand_over() : expect_relief();
  const auto service = begin_service(file->origin());
  lock.unlock();
  if (file.use_count() == 1) file->close();
  file.reset();
  lock.lock();
  end_service(service);
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
