// The I/O node's one lock. What it guards is in objects whose methods take a `const Lock&`, or is
// Guarded: to reach it without the lock does not compile. A method that takes a `Lock&` releases it
// meanwhile.

#pragma once

#include <mutex>
#include <utility>

namespace penstock {

using Lock = std::unique_lock<std::mutex>;

template <class T>
class Guarded {
 public:
  template <class... Arguments>
  explicit Guarded(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}

  T& operator()(const Lock&) { return value_; }
  const T& operator()(const Lock&) const { return value_; }

 private:
  T value_;
};

}  // namespace penstock
