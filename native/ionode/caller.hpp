// A process of this host that asks for permission: its connection, and the page that it shares.

#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "connection.hpp"
#include "permits.hpp"

namespace penstock {

struct Caller : Peer {
  Caller(int descriptor, uid_t uid, const Origin& origin, Quota::Share share)
      : Peer{Transport::local},
        descriptor(descriptor),
        uid(uid),
        origin(origin),
        share(std::move(share)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    if (descriptor >= 0) ::close(descriptor);
  }

  penstock_permit_page& shared() const {
    return *reinterpret_cast<penstock_permit_page*>(page.data());
  }

  // Its thread number `index`, which is below PENSTOCK_PERMITS. Null: its user has too many. What
  // this process reads or writes of a page is charged to this process, hence the bound.
  Permit* permit(std::uint32_t index, Quota& quota) {
    auto& permit = permits[index];
    if (permit != nullptr) return permit.get();
    Quota::Share share = quota.take(origin);
    if (!share) return nullptr;
    permit = std::make_unique<Permit>(*this, shared().permit[index], uid, std::move(share));
    return permit.get();
  }

  // The observer's memory of a file. What a client calls its files is bounded.
  Stream& stream(std::uint64_t file) {
    if (streams.size() >= most_streams && !streams.contains(file)) streams.clear();
    return streams[file];
  }

  static constexpr std::size_t most_streams = 256;

  int descriptor;  // -1: it has gone, and one of its permits is still queued
  const uid_t uid;
  const Origin origin;
  const Quota::Share share;  // of descriptors
  Quota::Share process;      // of pages
  Time since = 0;            // accepted
  Mapping page;
  Group* group = nullptr;  // null: it has not said which job it is of
  std::array<std::unique_ptr<Permit>, PENSTOCK_PERMITS> permits;
  std::unordered_map<std::uint64_t, Stream> streams;
  std::uint64_t observed = 0;  // the interval in which it was last counted
  std::uint32_t queued = 0;    // permits
  bool readable = false;       // waits for its turn to be read
  bool leaving = false;        // is read no more; what its threads did last is not all known yet
};

// What a client said.
struct CallerMessage {
  enum class What : std::uint8_t {
    said,
    gone,  // the client has ended its connection
    left,  // ours: of a client that is not heard any more, behind all that it said
  };

  Caller* client;
  What what = What::said;
  std::size_t bytes = 0;
  union {
    penstock_permit_hello hello;
    penstock_permit_message message;
  };
};

// The next message of its socket; false: nothing has come. What is no message of ours, or brings a
// descriptor along, which the kernel closes, is of one byte.
bool receive(Caller& caller, CallerMessage& message);

// A page to share with a client, and its descriptor, -1 if none is to be had: of memory that cannot
// shrink, so that nothing that the client does to it ends this process.
struct SharedPage {
  Mapping memory;
  int descriptor = -1;
};
SharedPage make_permit_page();

// The user at the other end of a Unix socket; false: it is not known.
bool peer_user(int descriptor, uid_t& uid);

// Answer the greeting, with the page. Returns false if the client is gone.
bool welcome_caller(int descriptor, std::uint64_t node, int page);

}  // namespace penstock
