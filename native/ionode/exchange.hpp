// A request on its way through the I/O node, from its frame to its reply.

#pragma once

#include <memory>
#include <string>

#include "open_file.hpp"
#include "protocol.hpp"
#include "scheduler.hpp"

namespace penstock {

struct Connection;

// A connection has one request at a time, and so one of these, used again for each.
struct Exchange : Request {
  std::uint32_t operation = 0;
  std::uint32_t frame = 0;   // the client's count
  std::uint32_t handle = 0;  // OPEN: the root's number
  std::uint32_t flags = 0;
  std::shared_ptr<OpenFile> open_file;
  std::byte* data = nullptr;
  std::string path;  // of OPEN
  std::int64_t result = 0;
  bool answered = false;       // `result` is there although no call was made
  Time doubtful_since = 0;     // its client was there then
  std::uint64_t observed = 0;  // the interval in which its connection was last counted
  Connection* connection = nullptr;

  void answer(std::int64_t with) {
    result = with;
    answered = true;
  }
};

}  // namespace penstock
