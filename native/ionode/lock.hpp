// The I/O node's one lock. What it guards is in objects whose methods take a `const Lock&`: to call
// one without the lock does not compile. A method that takes a `Lock&` releases it meanwhile.

#pragma once

#include <mutex>

namespace penstock {

using Lock = std::unique_lock<std::mutex>;

}  // namespace penstock
