// The system calls that requests stand for, made with the caller's identity.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exchange.hpp"

namespace penstock {

// A managed root that clients on other hosts name by number.
struct Root {
  std::string path;
  int descriptor = -1;
};

// What is needed to open a file: by a descriptor that a client passed, or below a root.
struct Opening {
  std::shared_ptr<FileNumbers> numbers;
  std::shared_ptr<const Identity> identity;
  const std::vector<Root>* roots;
};

// Opens the file of an OPEN; `result` is 0, or the error number, negated. What the client passed
// along is closed.
std::shared_ptr<OpenFile> open_file(Exchange& exchange, const Opening& opening);

// Reads, writes or syncs: one call for all of a batch if that succeeds. Each request gets its own
// result. Batches are what schedulers make them: see scheduler.hpp.
void serve(const Batch& batch, std::uint64_t dirty_window);

// The thread's calls on files are this identity's from now on. Only in a node that serves all
// users.
bool assume(const Identity& identity);

// The thread may no longer do what clients may not: keep set-user-ID bits when writing, exceed
// quotas, or pass over permissions. False with errno if that fails.
bool drop_privileges();

}  // namespace penstock
