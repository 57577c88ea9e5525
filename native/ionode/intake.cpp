// Frames become exchanges: in the scheduler, or among the chores. With the lock held.

#include <climits>
#include <cstring>

#include "node.hpp"

namespace penstock {
namespace {

// Compares in constant time.
bool equal_secrets(const std::uint8_t* given, const std::string& secret) {
  unsigned differs = 0;
  for (std::size_t k = 0; k < secret.size(); ++k) {
    differs |= given[k] ^ static_cast<std::uint8_t>(secret[k]);
  }
  return differs == 0;
}

}  // namespace

void Node::begin(Connection& connection, Time before, Time now) {
  const penstock_request& request = connection.parser.request();
  Exchange& exchange = connection.exchange;
  exchange.arrived = now;
  exchange.doubtful_since = before;
  exchange.operation = request.operation;
  exchange.frame = request.number;
  exchange.handle = request.file;
  exchange.flags = request.flags;
  exchange.offset = request.offset;
  exchange.bytes = request.bytes;
  exchange.answered = false;
  switch (request.operation) {
    case PENSTOCK_HELLO:
      if (!greet(connection)) {
        ++counts_.refused;
        connection.phase = Phase::idle;
        doom(connection);
        return;
      }
      exchange.answer(0);
      break;
    case PENSTOCK_OPEN:
      begin_open(connection);
      break;
    case PENSTOCK_CLOSE:
      break;
    default:
      begin_transfer(connection);
      if (!exchange.answered && (exchange.bytes > 0 || exchange.kind == Kind::sync)) {
        scheduler_->add(exchange);
        if (exchange.kind != Kind::sync) {
          OpenFile& file = *exchange.open_file;
          observer_.arrived(exchange, file.inode(), file.stream, exchange.observed, now);
        }
        returned();
        return;
      }
      break;
  }
  chores_.push_back(&exchange);
}

// Identifies the client and maps its window. False if it may not be served.
bool Node::greet(Connection& connection) {
  penstock_introduction introduction;
  std::memcpy(&introduction, connection.parser.follows().data(), sizeof introduction);
  if (connection.transport == Transport::tcp) {
    if (introduction.window != 0 || !equal_secrets(introduction.token, token_)) return false;
  } else {
    if (connection.lost || connection.passed.empty()) return false;
    connection.window = map_window(connection.passed.front(), introduction.window);
    for (const int descriptor : std::exchange(connection.passed, {})) ::close(descriptor);
    if (!connection.window) return false;
  }
  const auto admitted = sessions_.admit(introduction, *connection.identity);
  if (!admitted) return false;
  connection.session = admitted->session;
  connection.group = admitted->group;
  if (admitted->new_group) weigh_group(*admitted->group);
  connection.exchange.group = admitted->group->id;
  unidentified_.remove(&connection);
  connection.parser.introduce(introduction.window);
  return true;
}

void Node::begin_open(Connection& connection) {
  Exchange& exchange = connection.exchange;
  if (!connection.passed.empty()) {
    exchange.descriptor = connection.passed.front();
    connection.passed.clear();
  }
  const auto follows = connection.parser.follows();
  exchange.path.assign(reinterpret_cast<const char*>(follows.data()), follows.size());
  if (std::exchange(connection.lost, false)) {
    exchange.answer(-EMFILE);
  } else if ((exchange.flags & ~open_flags) != 0 || exchange.path.find('\0') != std::string::npos) {
    exchange.answer(-EINVAL);
  }
  if (exchange.answered && exchange.descriptor >= 0) {
    ::close(std::exchange(exchange.descriptor, -1));
  }
}

void Node::begin_transfer(Connection& connection) {
  Exchange& exchange = connection.exchange;
  exchange.open_file = connection.session->file(exchange.handle);
  if (exchange.open_file == nullptr) {
    exchange.answer(-EBADF);
    return;
  }
  exchange.kind = exchange.operation == PENSTOCK_READ    ? Kind::read
                  : exchange.operation == PENSTOCK_WRITE ? Kind::write
                                                         : Kind::sync;
  if (exchange.kind == Kind::sync) exchange.offset = exchange.flags = 0;
  if ((exchange.flags & ~call_flags) != 0) {
    exchange.answer(-EOPNOTSUPP);
  } else if (exchange.offset > static_cast<std::uint64_t>(LLONG_MAX) - exchange.bytes) {
    // To the kernel -1 would mean the descriptor's own position.
    exchange.answer(-EINVAL);
  }
  exchange.data =
      connection.transport == Transport::tcp ? connection.parser.data() : connection.window.data();
  // Calls with other flags are other calls.
  const std::uint64_t call =
      ((exchange.flags & RWF_SYNC) != 0 ? 2 : 0) + ((exchange.flags & RWF_DSYNC) != 0 ? 1 : 0);
  exchange.file = exchange.open_file->number() << 2 | call;
  exchange.server = server_of(exchange);
}

}  // namespace penstock
