// Frames of the wire format out of a stream of bytes, without any socket: docs/internals/wire.md.
//
// A parser holds one request at a time. Asked for more by one byte than that request can have, the
// stream shows a second request that came before the first was answered, which is an error.

#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "wire.h"

namespace penstock {

static_assert(sizeof(penstock_request) == 32 && sizeof(penstock_reply) == 32);
static_assert(sizeof(penstock_introduction) == 120 && sizeof(penstock_challenge) == 64);
static_assert(sizeof(penstock_transcript) == 224);

inline constexpr std::uint32_t open_flags = O_ACCMODE | O_DIRECT | O_SYNC | O_DSYNC | O_NOATIME;
inline constexpr std::uint32_t call_flags = RWF_DSYNC | RWF_SYNC;

class Parser {
 public:
  enum class Step : std::uint8_t {
    more,     // the frame is not complete
    payload,  // call place() with memory for the frame's `bytes`
    frame,    // complete; call next() when it is answered
    wrong,
  };

  Parser() : head_(sizeof(penstock_request) + PENSTOCK_PATH_BYTES + 1) {}

  // Where the next bytes belong. Never empty before the frame is complete or wrong.
  std::span<std::byte> space() {
    if (payload_ == nullptr) return std::span(head_).subspan(have_);
    return std::span(payload_ + have_payload_, request_.bytes - have_payload_);
  }

  // One byte behind the payload, for what comes too early; null while the head has room for it.
  std::byte* spare() { return payload_ == nullptr ? nullptr : &spare_; }

  Step arrived(std::size_t bytes) {
    if (payload_ != nullptr) {
      have_payload_ += bytes;
      if (have_payload_ > request_.bytes) return Step::wrong;
      return have_payload_ == request_.bytes ? Step::frame : Step::more;
    }
    have_ += bytes;
    if (have_ < sizeof request_) return Step::more;
    if (!begun_) {
      std::memcpy(&request_, head_.data(), sizeof request_);
      if (!sound()) return Step::wrong;
      begun_ = true;
    }
    return body();
  }

  // Memory for the payload of a WRITE, or for what a READ is to bring.
  Step place(std::byte* memory) {
    if (request_.operation == PENSTOCK_READ) {
      data_ = memory;
      return have_ == sizeof request_ ? Step::frame : Step::wrong;
    }
    payload_ = data_ = memory;
    have_payload_ = std::min<std::size_t>(have_ - sizeof request_, request_.bytes);
    std::memcpy(memory, head_.data() + sizeof request_, have_payload_);
    return have_payload_ == request_.bytes ? Step::frame : Step::more;
  }

  const penstock_request& request() const { return request_; }
  // What follows the request, where it is kept in the head: an introduction, or a path.
  std::span<const std::byte> follows() const { return {head_.data() + sizeof request_, follow_}; }
  std::byte* data() const { return data_; }
  bool challenged() const { return standing_ == Standing::challenged; }
  bool introduced() const { return standing_ == Standing::introduced; }

  // HELLO is being answered: the client's proof comes next.
  void challenge() { standing_ = Standing::challenged; }
  // The client has proven that it has the token.
  void introduce() { standing_ = Standing::introduced; }

  void next() {
    have_ = have_payload_ = follow_ = 0;
    payload_ = data_ = nullptr;
    begun_ = false;
  }

 private:
  enum class Standing : std::uint8_t { unknown, challenged, introduced };

  // Of the client, for this operation.
  static Standing standing_for(std::uint32_t operation) {
    if (operation == PENSTOCK_HELLO) return Standing::unknown;
    return operation == PENSTOCK_PROVE ? Standing::challenged : Standing::introduced;
  }

  // What can be said of a request by its head alone. What only the call itself can tell (a handle
  // that is invalid, flags that no call has) is answered with an error number instead.
  bool sound() {
    if (request_.magic != PENSTOCK_WIRE_MAGIC) return false;
    if (standing_ != standing_for(request_.operation)) return false;
    follow_ = 0;
    switch (request_.operation) {
      case PENSTOCK_HELLO:
        follow_ = sizeof(penstock_introduction);
        return request_.bytes == follow_;
      case PENSTOCK_PROVE:
        follow_ = PENSTOCK_DIGEST_BYTES;
        return request_.bytes == follow_ && request_.file == 0 && request_.offset == 0 &&
               request_.flags == 0;
      case PENSTOCK_OPEN:
        follow_ = request_.bytes;
        return follow_ > 0 && follow_ <= PENSTOCK_PATH_BYTES;
      case PENSTOCK_WRITE:
      case PENSTOCK_READ:
        return request_.bytes <= PENSTOCK_LARGEST;
      case PENSTOCK_FSYNC:
      case PENSTOCK_FDATASYNC:
      case PENSTOCK_CLOSE:
        return request_.bytes == 0;
      default:
        return false;
    }
  }

  Step body() {
    const bool data = request_.operation == PENSTOCK_WRITE || request_.operation == PENSTOCK_READ;
    if (data) {
      const std::size_t most =
          sizeof request_ + (request_.operation == PENSTOCK_WRITE ? request_.bytes : 0);
      if (have_ > most) return Step::wrong;
      if (request_.bytes == 0) return Step::frame;
      return Step::payload;
    }
    if (have_ < sizeof request_ + follow_) return Step::more;
    return have_ == sizeof request_ + follow_ ? Step::frame : Step::wrong;
  }

  std::vector<std::byte> head_;
  Standing standing_ = Standing::unknown;
  bool begun_ = false;
  std::byte spare_{};
  std::size_t have_ = 0;
  std::size_t have_payload_ = 0;
  std::size_t follow_ = 0;
  std::byte* payload_ = nullptr;
  std::byte* data_ = nullptr;
  penstock_request request_{};
};

}  // namespace penstock
