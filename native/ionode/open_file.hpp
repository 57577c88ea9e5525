// A file that the I/O node has open for a session, and the numbers by which requests to the same
// inode find each other.

#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "dirty_window.h"
#include "observer.hpp"
#include "quota.hpp"
#include "stripe_map.hpp"

namespace penstock {

// A moving average of nanoseconds. One call during which the thread lost its processor does not
// make a file slow, so that a call counts for no more than this.
inline std::uint32_t average(std::uint32_t before, std::uint64_t nanoseconds) {
  constexpr std::uint64_t most = 100'000;
  const std::uint64_t counted = nanoseconds < most ? nanoseconds : most;
  return static_cast<std::uint32_t>((7 * std::uint64_t{before} + counted) / 8);
}

// One number for all descriptors with which one call may serve requests of several processes. A
// number is never used for another file.
class FileNumbers {
 public:
  using Key = std::tuple<dev_t, ino_t, std::uint32_t>;  // and flags

  std::uint64_t acquire(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto& [number, users] = known_[key];
    if (users++ == 0) number = ++last_;
    return number;
  }

  void release(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto entry = known_.find(key);
    if (--entry->second.second == 0) known_.erase(entry);
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::pair<std::uint64_t, std::uint64_t>> known_;
  std::uint64_t last_ = 0;
};

class OpenFile {
 public:
  OpenFile(int descriptor, const FileNumbers::Key& key, std::shared_ptr<FileNumbers> numbers,
           Quota::Share share = {})
      : share_(std::move(share)),
        descriptor_(descriptor),
        key_(key),
        numbers_(std::move(numbers)),
        number_(numbers_->acquire(key)),
        layout_(StripeMap::of(descriptor)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    close();
    numbers_->release(key_);
  }

  // 0, or the error number, negated. For the last who holds the file.
  std::int64_t close() {
    if (descriptor_ < 0) return 0;
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    // Linux has closed the descriptor even if a signal came in between.
    return closed == 0 || errno == EINTR ? 0 : -errno;
  }

  // Bytes were written; returns when no more than a window is ahead of the storage.
  void wrote(std::uint64_t offset, std::uint64_t bytes, std::uint64_t window) {
    if (window == 0 || (std::get<2>(key_) & (O_DIRECT | O_DSYNC)) != 0) return;
    const std::lock_guard lock(dirtying_);
    penstock_dirtied(&dirty_, descriptor_, offset, bytes, window);
  }

  // The rest of a large file is ahead of the storage no more.
  void drain() {
    const std::lock_guard lock(dirtying_);
    if (!penstock_is_small(&dirty_)) penstock_drain(&dirty_, descriptor_);
  }

  // A storage error that occurred outside of an fsync, to be reported by the next one; 0 if none.
  int late_error() {
    const std::lock_guard lock(dirtying_);
    return penstock_take_error(&dirty_);
  }

  // Who opened it.
  const Origin& origin() const { return share_.origin(); }
  int descriptor() const { return descriptor_; }
  std::uint64_t number() const { return number_; }
  // One number for the file whoever has it open, and however; two may share one, if hardly ever.
  std::uint64_t inode() const { return std::get<1>(key_) ^ std::get<0>(key_) * 0x9E3779B97F4A7C15; }
  // Where its file system says that the file lies; the layout of all files otherwise.
  std::uint32_t server(std::uint64_t offset, const StripeMap& otherwise) const {
    return (layout_ ? *layout_ : otherwise).server(offset);
  }

  // Long calls are not made by the thread that polls. Threads may overwrite each other's value.
  std::uint32_t usual_time() const { return usual_time_.load(std::memory_order_relaxed); }
  void took(std::uint64_t nanoseconds) {
    usual_time_.store(average(usual_time(), nanoseconds), std::memory_order_relaxed);
  }

  Stream stream;  // the observer's, under the node's lock

 private:
  const Quota::Share share_;  // of descriptors
  int descriptor_;
  FileNumbers::Key key_;
  std::shared_ptr<FileNumbers> numbers_;
  std::uint64_t number_;
  const std::optional<StripeMap> layout_;
  std::atomic<std::uint32_t> usual_time_{0};
  std::mutex dirtying_;
  penstock_dirty dirty_{};
};

}  // namespace penstock
