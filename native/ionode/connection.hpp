// A connection of a client on another host: its socket, its one request, its data.

#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "peer.hpp"
#include "quota.hpp"
#include "sessions.hpp"

namespace penstock {

// Memory of a fixed place; unmapped with its owner.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t bytes)
      : address_(static_cast<std::byte*>(address)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, bytes_);
  }

  std::byte* data() const { return address_; }
  std::size_t size() const { return bytes_; }
  explicit operator bool() const { return address_ != nullptr; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// Memory for the data of requests, PENSTOCK_LARGEST bytes each, used again and again.
class Payloads {
 public:
  Mapping take();
  void give_back(Mapping payload);

 private:
  static constexpr std::size_t kept = 16;
  std::mutex mutex_;
  std::vector<Mapping> free_;
};

enum class Phase : std::uint8_t {
  idle,      // no request, or not all of one: the socket is the poller's to read
  busy,      // queued or in service
  replying,  // data of a READ is on its way
};

struct Connection : Peer {
  Connection(int descriptor, const Origin& origin, Quota::Share share)
      : Peer{Transport::tcp}, descriptor(descriptor), origin(origin), share(std::move(share)) {
    exchange.connection = this;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(descriptor); }

  const int descriptor;
  Parser parser;
  const Origin origin;
  const Quota::Share share;  // of descriptors
  Session* session = nullptr;
  Group* group = nullptr;
  Exchange exchange;

  std::atomic<Phase> phase{Phase::idle};
  std::atomic<bool> hung_up{false};
  // The node's lock guards what follows.
  // Threads that use the socket to reply. The next request may be answered by another before the
  // first is back from sending.
  std::uint32_t sending = 0;
  bool doomed = false;   // to be closed as soon as it is idle
  bool closing = false;  // is in the poller's list of those to be closed
  Time since = 0;        // unidentified: when accepted; stalled reply: last progress

  Mapping payload;
  std::uint64_t payload_held = 0;  // bytes that count against its job
  Quota::Share payload_share;      // and its host
  bool parked = false;             // waits for its job's requests to free memory
  std::atomic<bool> stalled{false};
  std::atomic<bool> input_waits{false};  // came while a reply was on its way
  penstock_transcript transcript{};      // of its introduction
  penstock_reply reply{};
  std::size_t to_send = 0;  // bytes of reply and payload
  std::size_t sent = 0;
  int unread = 0;  // bytes that the peer had not taken from the kernel when last looked at

  // False if the client is gone. Another request may come at once, so nothing is read here that
  // belongs to the exchange.
  bool send(const penstock_reply& reply) const;
  bool send(const penstock_reply& reply, const penstock_challenge& challenge) const;

  // Sends what the socket takes of a reply with data; false if the peer is gone.
  bool send_rest();

  bool quiet() const { return phase == Phase::idle && sending == 0; }
};

}  // namespace penstock
