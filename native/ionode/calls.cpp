#include "calls.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace penstock {
namespace {

template <class Call>
std::int64_t retried(Call call) {
  for (;;) {
    const std::int64_t result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

Exchange& exchange_of(Request* request) { return static_cast<Exchange&>(*request); }

std::int64_t transfer(const Exchange& first, const iovec* vectors, std::size_t count) {
  const int descriptor = first.open_file->descriptor();
  const int n = static_cast<int>(count);
  const auto offset = static_cast<off_t>(first.offset);
  const int flags = static_cast<int>(first.flags);
  if (first.kind == Kind::write) {
    return retried([&] { return ::pwritev2(descriptor, vectors, n, offset, flags); });
  }
  return retried([&] { return ::preadv2(descriptor, vectors, n, offset, flags); });
}

void serve_alone(Exchange& exchange) {
  if (exchange.kind == Kind::sync) {
    const int descriptor = exchange.open_file->descriptor();
    const bool data = exchange.operation == PENSTOCK_FDATASYNC;
    exchange.result = retried([&] { return data ? ::fdatasync(descriptor) : ::fsync(descriptor); });
    const int late = exchange.open_file->late_error();
    if (exchange.result == 0) exchange.result = -late;
    return;
  }
  const iovec vector{exchange.data, exchange.bytes};
  exchange.result = transfer(exchange, &vector, 1);
}

// Gives each request its part of what one call moved, in order.
void divide(std::int64_t moved, const Batch& batch) {
  for (Request* request : batch) {
    const std::int64_t part = std::min<std::int64_t>(moved, request->bytes);
    exchange_of(request).result = part;
    moved -= part;
  }
}

bool serve_together(const Batch& batch) {
  std::array<iovec, largest_batch> vectors;
  if (batch.size() > vectors.size()) return false;
  for (std::size_t k = 0; k < batch.size(); ++k) {
    vectors[k] = {exchange_of(batch[k]).data, batch[k]->bytes};
  }
  const std::int64_t moved = transfer(exchange_of(batch[0]), vectors.data(), batch.size());
  if (moved < 0) return false;
  // Where the call came to a halt in the middle, the next request may still have room, or an error
  // of its own: no client gets a zero that its own call would not have returned.
  divide(moved, batch);
  std::uint64_t done = 0;
  for (Request* request : batch) {
    if (done >= static_cast<std::uint64_t>(moved) && request->bytes > 0) {
      serve_alone(exchange_of(request));
    }
    done += request->bytes;
  }
  return true;
}

std::int64_t open_below(const Root& root, const std::string& path, std::uint32_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return retried(
      [&] { return ::syscall(SYS_openat2, root.descriptor, path.c_str(), &how, sizeof how); });
}

// Whether its files are the kernel's own, which show or do more to a process of privilege than to
// the client for which it would be opened.
bool is_of_the_kernel(int descriptor) {
  struct statfs of{};
  if (::fstatfs(descriptor, &of) != 0) return true;
  switch (of.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case SELINUX_MAGIC:
    case BPF_FS_MAGIC:
    case EFIVARFS_MAGIC:
      return true;
    default:
      return false;
  }
}

struct Opened {
  std::int64_t descriptor;
  struct stat is;
};

Opened open_named(const Exchange& exchange, const std::vector<Root>& roots) {
  if (exchange.handle >= roots.size()) return {-ENOENT, {}};
  Opened opened{open_below(roots[exchange.handle], exchange.path, exchange.flags), {}};
  if (opened.descriptor < 0) return opened;
  const int descriptor = static_cast<int>(opened.descriptor);
  if (::fstat(descriptor, &opened.is) != 0 || !S_ISREG(opened.is.st_mode) ||
      opened.is.st_ino != exchange.offset) {
    ::close(descriptor);
    return {-ESTALE, {}};
  }
  if (is_of_the_kernel(descriptor)) {
    ::close(descriptor);
    return {-EINVAL, {}};
  }
  ::fcntl(descriptor, F_SETFL, static_cast<int>(exchange.flags));  // without O_NONBLOCK again
  return opened;
}

}  // namespace

std::shared_ptr<OpenFile> open_file(Exchange& exchange, const std::vector<Root>& roots,
                                    const std::shared_ptr<FileNumbers>& numbers,
                                    Quota::Share share) {
  const Opened opened = open_named(exchange, roots);
  exchange.result = std::min<std::int64_t>(opened.descriptor, 0);
  if (opened.descriptor < 0) return nullptr;
  const FileNumbers::Key key{opened.is.st_dev, opened.is.st_ino, exchange.flags};
  return std::make_shared<OpenFile>(static_cast<int>(opened.descriptor), key, numbers,
                                    std::move(share));
}

void serve(const Batch& batch, std::uint64_t dirty_window) {
  if (batch.size() <= 1 || !serve_together(batch)) {
    for (Request* request : batch) serve_alone(exchange_of(request));
  }
  if (dirty_window == 0 || batch[0]->kind != Kind::write) return;
  for (Request* request : batch) {
    const Exchange& exchange = exchange_of(request);
    if (exchange.result <= 0) continue;
    const auto written = static_cast<std::uint64_t>(exchange.result);
    exchange.open_file->wrote(exchange.offset, written, dirty_window);
  }
}

}  // namespace penstock
