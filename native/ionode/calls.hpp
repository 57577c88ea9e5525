// The system calls that requests of other hosts stand for.

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

// Opens the file of an OPEN below its root; `result` is 0, or the error number, negated.
std::shared_ptr<OpenFile> open_file(Exchange& exchange, const std::vector<Root>& roots,
                                    const std::shared_ptr<FileNumbers>& numbers,
                                    Quota::Share share);

// Reads, writes or syncs: one call for all of a batch if that succeeds. Each request gets its own
// result. Batches are what schedulers make them: see scheduler.hpp.
void serve(const Batch& batch, std::uint64_t dirty_window);

}  // namespace penstock
