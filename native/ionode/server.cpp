// What the queues give is called, accounted for and answered.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "server.hpp"

namespace penstock {
namespace {

// A request that waited longer is not begun before its client was seen to be there: what a killed
// process asked for must not overwrite what its successor wrote meanwhile.
constexpr Time doubtful_after = 20'000'000;
constexpr std::uint32_t long_chore = 30'000;

constexpr std::uint64_t long_bytes = 64 << 10;
constexpr std::uint32_t long_time = 30'000;

std::uint64_t boot_id() {
  std::uint64_t id = 0;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    unsigned long first = 0;
    unsigned second = 0;
    unsigned third = 0;
    if (std::fscanf(file, "%8lx-%4x-%4x", &first, &second, &third) == 3) {
      id = first << 32 | second << 16 | third;
    }
    std::fclose(file);
  }
  return id;
}

}  // namespace

Server::Server(Shared& shared, Queues& queues, Crew& crew, Desk& desk, Intake& intake)
    : shared_(shared),
      queues_(queues),
      crew_(crew),
      desk_(desk),
      intake_(intake),
      boot_(boot_id()) {}

Server::~Server() {
  for (const Root& root : roots_) ::close(root.descriptor);
}

void Server::end_service(const Lock& lock, Queues::Serving service) {
  if (queues_.end_service(lock, service, now())) crew_.poke(lock);
  if (shared_.draining(lock)) shared_.changed.notify_all();
}

// False if there is nothing to serve now.
bool Server::serve_next(Lock& lock) {
  if (Exchange* const chore = queues_.take_chore(lock)) {
    crew_.served(lock, 1);
    serve_chore(lock, *chore);
    return true;
  }
  if (auto file = queues_.take_left_file(lock)) {
    close_left_file(lock, std::move(file));
    return true;
  }
  const Batch batch = queues_.take(lock, now());
  if (batch.empty()) return false;
  crew_.served(lock, batch.size());
  if (batch.front()->permit) {
    desk_.grant(lock, batch);
  } else {
    serve_batch(lock, batch);
  }
  return true;
}

bool Server::long_to_serve(const Batch& batch) {
  if (batch.empty() || batch.size() > 8) return true;
  const auto& first = static_cast<const Exchange&>(*batch[0]);
  return batch.bytes() >= long_bytes || first.kind == Kind::sync ||
         first.open_file->usual_time() >= long_time;
}

void Server::serve_batch(Lock& lock, const Batch& batch) {
  const bool is_long = long_to_serve(batch);
  is_long ? crew_.hand_over(lock) : crew_.expect_relief(lock);
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
  ++shared_.counts(lock).batches;
  if (batch.size() > 1) shared_.counts(lock).aggregated += batch.size();
  for (Request* request : batch) {
    auto& exchange = static_cast<Exchange&>(*request);
    if (std::find(dropped.begin(), dropped.end(), request) != dropped.end()) {
      if (exchange.kind != Kind::sync) shared_.observer(lock).left(exchange.kind, 0, began + took);
      drop(lock, exchange);
      continue;
    }
    account(lock, exchange);
    if (exchange.kind != Kind::sync) {
      const auto moved = static_cast<std::uint64_t>(std::max<std::int64_t>(exchange.result, 0));
      shared_.observer(lock).left(exchange.kind, moved, began + took);
    }
    reply(lock, exchange);
  }
  if (shared_.draining(lock)) shared_.changed.notify_all();
}

void Server::serve_chore(Lock& lock, Exchange& exchange) {
  if (!exchange.answered) {
    usual_chore_ >= long_chore ? crew_.hand_over(lock) : crew_.expect_relief(lock);
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
  // A greeting counts as one request with its proof.
  if (exchange.operation != PENSTOCK_HELLO) account(lock, exchange);
  reply(lock, exchange);
  if (shared_.draining(lock)) shared_.changed.notify_all();
}

void Server::open(Lock& lock, Exchange& exchange) {
  Connection& connection = *exchange.connection;
  const bool full = connection.session->full(shared_.sessions(lock).limits());
  lock.unlock();
  std::shared_ptr<OpenFile> file;
  Quota::Share share;
  if (!full) share = shared_.descriptors->take(connection.origin);
  if (share) {
    file = open_file(exchange, roots_, numbers_, std::move(share));
  } else {
    exchange.result = -EMFILE;
  }
  lock.lock();
  if (file == nullptr) return;
  // Other connections of the session may have opened files meanwhile.
  if (connection.session->full(shared_.sessions(lock).limits())) {
    exchange.result = -EMFILE;
    queues_.add_left(lock, {std::move(file)});
    return;
  }
  exchange.result = connection.session->add(std::move(file));
}

void Server::close_file(Lock& lock, Exchange& exchange) {
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
void Server::close_left_file(Lock& lock, std::shared_ptr<OpenFile> file) {
  usual_chore_ >= long_chore ? crew_.hand_over(lock) : crew_.expect_relief(lock);
  const auto service = queues_.begin_service(lock, file->origin(), now());
  lock.unlock();
  if (file.use_count() == 1) file->close();
  file.reset();
  lock.lock();
  end_service(lock, service);
}

bool Server::client_gone(const Exchange& exchange, Time now) {
  const Connection& connection = *exchange.connection;
  if (connection.hung_up.load(std::memory_order_relaxed)) return true;
  if (now - exchange.doubtful_since < doubtful_after) return false;
  pollfd poll_socket{connection.descriptor, POLLRDHUP, 0};
  return ::poll(&poll_socket, 1, 0) > 0 &&
         (poll_socket.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

void Server::account(const Lock& lock, const Exchange& exchange) {
  ++shared_.counts(lock).requests;
  if (exchange.result < 0) {
    ++shared_.counts(lock).errors;
    return;
  }
  const auto moved = static_cast<std::uint64_t>(exchange.result);
  switch (exchange.operation) {
    case PENSTOCK_READ:
      ++shared_.counts(lock).reads;
      shared_.counts(lock).read_bytes += moved;
      break;
    case PENSTOCK_WRITE:
      ++shared_.counts(lock).writes;
      shared_.counts(lock).write_bytes += moved;
      break;
    case PENSTOCK_FSYNC:
    case PENSTOCK_FDATASYNC:
      ++shared_.counts(lock).syncs;
      return;
    default:
      return;
  }
  exchange.connection->group->bytes += moved;
}

void Server::drop(const Lock& lock, Exchange& exchange) {
  Connection& connection = *exchange.connection;
  ++shared_.counts(lock).dropped;
  intake_.release(lock, connection);
  connection.phase = Phase::idle;
  connection.hung_up = true;
  intake_.doom(lock, connection);
}

// The exchange is over: its connection takes the next request before the reply is on its way, for
// that request may come before this thread is back from sending.
void Server::reply(Lock& lock, Exchange& exchange) {
  Connection& connection = *exchange.connection;
  connection.reply = {PENSTOCK_WIRE_MAGIC, exchange.frame, exchange.result, 0, 0};
  if (exchange.operation == PENSTOCK_HELLO) {
    connection.reply.boot = boot_;
    connection.reply.node = shared_.options.id;
    connection.transcript.reply = connection.reply;
  }
  const bool data = exchange.operation == PENSTOCK_READ && exchange.result > 0;
  ++connection.sending;
  if (data) {
    reply_with_payload(lock, connection);
    return;
  }
  const penstock_reply reply = connection.reply;
  const bool challenge = exchange.operation == PENSTOCK_HELLO;
  penstock_transcript transcript;
  if (challenge) transcript = connection.transcript;
  std::shared_ptr<OpenFile> file = std::move(exchange.open_file);
  intake_.release(lock, connection);
  connection.parser.next();
  connection.phase.store(Phase::idle, std::memory_order_release);
  lock.unlock();
  file.reset();
  const bool sent = challenge ? send_challenge(connection, transcript) : connection.send(reply);
  lock.lock();
  --connection.sending;
  if (!sent || connection.doomed) intake_.doom(lock, connection);
  if (shared_.draining(lock)) crew_.poke(lock);
}

// The I/O node proves first that it has the token: before, the client says nothing that is worth
// anything to another one.
bool Server::send_challenge(const Connection& connection,
                            const penstock_transcript& transcript) const {
  penstock_challenge challenge{};
  std::memcpy(challenge.nonce, transcript.nonce, sizeof challenge.nonce);
  intake_.prove(transcript, PENSTOCK_ROLE_NODE, challenge.proof);
  return connection.send(transcript.reply, challenge);
}

void Server::reply_with_payload(Lock& lock, Connection& connection) {
  connection.exchange.open_file.reset();
  connection.sent = 0;
  connection.to_send = sizeof connection.reply + static_cast<std::size_t>(connection.reply.result);
  connection.phase = Phase::replying;
  lock.unlock();
  const bool alive = connection.send_rest();
  lock.lock();
  --connection.sending;
  if (!alive || connection.sent == connection.to_send) {
    intake_.finish_reply(lock, connection);
    if (!alive || connection.doomed) intake_.doom(lock, connection);
    return;
  }
  intake_.stall(lock, connection);
}

}  // namespace penstock
