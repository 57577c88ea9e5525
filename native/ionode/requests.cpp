// Frames become exchanges in the queues.

#include <sys/random.h>

#include <climits>
#include <cstring>

#include "intake.hpp"

namespace penstock {

void Intake::begin(const Lock& lock, Connection& connection, Time before, Time now) {
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
    case PENSTOCK_PROVE:
      if (!(request.operation == PENSTOCK_HELLO ? greet(connection) : admit(lock, connection))) {
        ++shared_.counts(lock).refused;
        connection.phase = Phase::idle;
        doom(lock, connection);
        return;
      }
      exchange.answer(0);
      break;
    case PENSTOCK_OPEN:
      begin_open(lock, connection);
      break;
    case PENSTOCK_CLOSE:
      break;
    default:
      begin_transfer(lock, connection);
      if (!exchange.answered && (exchange.bytes > 0 || exchange.kind == Kind::sync)) {
        queues_.add(lock, exchange);
        if (exchange.kind != Kind::sync) {
          OpenFile& file = *exchange.open_file;
          shared_.observer(lock).arrived(exchange, file.inode(), file.stream, exchange.observed,
                                         now);
        }
        return;
      }
      break;
  }
  queues_.add_chore(lock, exchange);
}

// Keeps what the client says of itself until it has proven that it has the token. False: there are
// no random numbers.
bool Intake::greet(Connection& connection) {
  penstock_transcript& transcript = connection.transcript;
  transcript.hello = connection.parser.request();
  std::memcpy(&transcript.introduction, connection.parser.follows().data(),
              sizeof transcript.introduction);
  connection.parser.challenge();
  return ::getrandom(transcript.nonce, sizeof transcript.nonce, 0) == sizeof transcript.nonce;
}

void Intake::prove(const penstock_transcript& transcript, const char* role,
                   std::uint8_t (&proof)[PENSTOCK_DIGEST_BYTES]) const {
  penstock_prove(&transcript, role, reinterpret_cast<const std::uint8_t*>(token_.data()), proof);
}

// False if the client may not be served.
bool Intake::admit(const Lock& lock, Connection& connection) {
  std::uint8_t given[PENSTOCK_DIGEST_BYTES];
  std::uint8_t expected[PENSTOCK_DIGEST_BYTES];
  std::memcpy(given, connection.parser.follows().data(), sizeof given);
  prove(connection.transcript, PENSTOCK_ROLE_CLIENT, expected);
  if (!penstock_same_digest(given, expected)) return false;
  const auto admitted = shared_.sessions(lock).admit(connection.transcript.introduction,
                                                     shared_.own_uid, connection.origin);
  if (!admitted) return false;
  connection.session = admitted->session;
  connection.group = admitted->group;
  queues_.weigh(lock, *admitted->group, shared_.sessions(lock));
  connection.exchange.group = admitted->group->id;
  connection.exchange.user = admitted->group->uid;
  shared_.strangers(lock).remove(connection);
  connection.parser.introduce();
  return true;
}

void Intake::begin_open(const Lock&, Connection& connection) {
  Exchange& exchange = connection.exchange;
  const auto follows = connection.parser.follows();
  exchange.path.assign(reinterpret_cast<const char*>(follows.data()), follows.size());
  if ((exchange.flags & ~open_flags) != 0 || exchange.path.find('\0') != std::string::npos)
    exchange.answer(-EINVAL);
}

void Intake::begin_transfer(const Lock&, Connection& connection) {
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
  exchange.data = connection.parser.data();
  // Calls with other flags are other calls.
  const std::uint64_t call =
      ((exchange.flags & RWF_SYNC) != 0 ? 2 : 0) + ((exchange.flags & RWF_DSYNC) != 0 ? 1 : 0);
  exchange.file = exchange.open_file->number() << 2 | call;
}

}  // namespace penstock
