#define _GNU_SOURCE
#include "forward.h"
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handles.h"
#include "process.h"
#include "real.h"
#include "slots.h"
#include "window.h"

#define MOST_BYTES 0x7ffff000u  // that one call moves, as in the kernel
#define KEPT_FLAGS (RWF_DSYNC | RWF_SYNC)
#define BLOCK 4096u  // what every O_DIRECT transfer may be aligned to

static _Atomic uint64_t largest_file = UINT64_MAX;

void penstock_limited(void) {
  if (penstock_retired()) return;
  struct rlimit limit;
  if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0) {
    atomic_store_explicit(&largest_file, (uint64_t)limit.rlim_cur, memory_order_relaxed);
  }
}

// Whether the kernel can read the first and the last byte here. This, and the next, are ways of
// which valgrind thinks nothing.
static bool is_readable(const char* data, size_t bytes) {
  char copy[2];
  const struct iovec here = {copy, 2};
  const struct iovec ends[2] = {{(void*)data, 1}, {(void*)(data + bytes - 1), 1}};
  const long got = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &here, 1, ends, 2, 0);
  return got == 2 || (got < 0 && errno != EFAULT);  // else: a kernel that may not be asked
}

// Quicker: the kernel reads a limit before it looks for the process that is to have it.
static bool is_piece_readable(const struct iovec* piece) {
  _Static_assert(sizeof *piece == sizeof(struct rlimit), "what is read is one piece");
  return piece != NULL && (syscall(SYS_prlimit64, -1, 0, piece, NULL) == 0 || errno != EFAULT);
}

static bool is_vector_readable(const struct iovec* pieces, int count) {
  const int error = errno;
  uintptr_t known = UINTPTR_MAX;  // a page
  bool readable = true;
  for (int k = 0; readable && k < count; ++k) {
    const uintptr_t last = (uintptr_t)(&pieces[k] + 1) - 1;
    if (last / BLOCK == known) continue;
    readable = last > (uintptr_t)&pieces[k] && is_piece_readable(&pieces[k]);
    known = last / BLOCK;
  }
  errno = error;
  return readable;
}

size_t penstock_vector_bytes(const struct iovec* pieces, int count) {
  if (count < 0 || count > IOV_MAX || penstock_active() == NULL) return PENSTOCK_REFUSED_VECTOR;
  if (!is_vector_readable(pieces, count)) return PENSTOCK_REFUSED_VECTOR;
  size_t bytes = 0;
  for (int k = 0; k < count; ++k) {
    if (pieces[k].iov_len > SSIZE_MAX) return PENSTOCK_REFUSED_VECTOR;
    const size_t rest = MOST_BYTES - bytes;
    bytes += pieces[k].iov_len < rest ? pieces[k].iov_len : rest;
  }
  return bytes;
}

// Linux 5.14 and later do. The same error would also tell of memory that may not be accessed so.
static bool knows_populate(void) {
  static const int anything = 0;
  static _Atomic int known;
  if (atomic_load_explicit(&known, memory_order_relaxed) == 0) {
    const uintptr_t page = (uintptr_t)&anything & ~(uintptr_t)(BLOCK - 1);
    atomic_store(&known, syscall(SYS_madvise, page, BLOCK, MADV_POPULATE_READ) == 0 ? 1 : -1);
  }
  return atomic_load_explicit(&known, memory_order_relaxed) > 0;
}

// The kernel answers EFAULT for memory that is not there; we would crash. One page or two to read
// from are tried, others populated (as the call would do), or on older kernels found to be mapped.
static bool is_there(const void* data, size_t bytes, bool to_read) {
  const uintptr_t begin = (uintptr_t)data, end = begin + bytes,
                  first = begin & ~(uintptr_t)(BLOCK - 1);
  if (bytes == 0) return true;
  if (end < begin) return false;
  if (to_read && end - first <= 2 * BLOCK) return is_readable(data, bytes);
  if (syscall(SYS_madvise, first, end - first,
              to_read ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) == 0)
    return true;
  if (knows_populate()) return false;
  unsigned char present[256];
  const size_t most = sizeof present * BLOCK;
  for (uintptr_t from = first; from < end; from += most) {
    if (syscall(SYS_mincore, from, end - from < most ? end - from : most, present) != 0)
      return false;
  }
  return true;
}

// The bytes of a call that an I/O node can do exactly as the kernel would; 0: leave it to the
// kernel.
static size_t forwardable(const penstock_call* call, const penstock_file* file) {
  if ((call->flags & ~KEPT_FLAGS) != 0 || call->count <= 0 || call->count > IOV_MAX) return 0;
  const bool aligned_only = (file->access & O_DIRECT) != 0;
  uintptr_t known = UINTPTR_MAX;  // a page that is there: small pieces often lie side by side
  size_t bytes = 0;
  for (int k = 0; k < call->count; ++k) {
    const struct iovec piece = call->pieces[k];
    if (aligned_only && (((uintptr_t)piece.iov_base | piece.iov_len) & (BLOCK - 1)) != 0) return 0;
    if (piece.iov_len > MOST_BYTES - bytes) return 0;
    bytes += piece.iov_len;
    const uintptr_t begin = (uintptr_t)piece.iov_base, page = begin & ~(uintptr_t)(BLOCK - 1);
    if (page == known && begin + piece.iov_len <= page + BLOCK) continue;
    if (!is_there(piece.iov_base, piece.iov_len, call->write)) return 0;
    if (piece.iov_len > 0) known = (begin + piece.iov_len - 1) & ~(uintptr_t)(BLOCK - 1);
  }
  return bytes;
}

// Whoever shares the descriptor may have changed its flags, in other processes unseen: a write that
// appends can only be done through itself, and the I/O node opened the file with these flags.
static bool flags_allow(const penstock_call* call, const penstock_file* file) {
  const long flags = syscall(SYS_fcntl, call->fd, F_GETFL);
  return flags >= 0 && (!call->write || (flags & O_APPEND) == 0) &&
         ((uint32_t)flags & O_DIRECT) == (file->access & O_DIRECT);
}

// What is left of a call when an I/O node cannot do it.
static ssize_t directly(const penstock_call* call, size_t skip, size_t bytes, uint64_t offset) {
  struct iovec rest[IOV_MAX > 64 ? 64 : IOV_MAX];
  int count = 0;
  const struct iovec* piece = call->pieces;
  for (; bytes > 0 && count < (int)(sizeof rest / sizeof *rest); ++piece) {
    if (skip >= piece->iov_len) {
      skip -= piece->iov_len;
      continue;
    }
    const size_t here = piece->iov_len - skip < bytes ? piece->iov_len - skip : bytes;
    rest[count++] = (struct iovec){(char*)piece->iov_base + skip, here};
    bytes -= here;
    skip = 0;
  }
  const struct penstock_real* real = penstock_real();
  if (call->flags != 0) {
    return call->write ? real->pwritev64v2(call->fd, rest, count, (off64_t)offset, call->flags)
                       : real->preadv64v2(call->fd, rest, count, (off64_t)offset, call->flags);
  }
  return call->write ? real->pwritev64(call->fd, rest, count, (off64_t)offset)
                     : real->preadv64(call->fd, rest, count, (off64_t)offset);
}

// One request's worth of a call: bytes moved, or -errno. `by_node` tells who did it.
static int64_t step(const penstock_control* page, const penstock_call* call, penstock_file* file,
                    size_t done, size_t* bytes, uint64_t offset, bool* by_node) {
  bool wanted;
  penstock_connection* connection = penstock_connect(page, file, offset, bytes, &wanted);
  int64_t result = PENSTOCK_GONE;
  uint32_t number = 0;
  if (connection != NULL) {
    number = connection->number;
    const int64_t handle = penstock_handle_of(connection, file, call->fd, false);
    if (handle >= 0) {
      const penstock_part part = {call->write, call->pieces, done,
                                  *bytes,      offset,       (uint32_t)call->flags};
      result = penstock_move(connection, file, (uint32_t)handle, &part);
    } else if (handle != PENSTOCK_GONE) {
      atomic_store_explicit(&file->direct, true, memory_order_relaxed);
    }
    penstock_disconnect(connection);
  }
  *by_node = result != PENSTOCK_GONE;
  if (*by_node && result > 0) penstock_count_by_node(number, (uint64_t)result);
  if (*by_node) return result;
  if (wanted) penstock_count_failed_open();
  const ssize_t moved = directly(call, done, *bytes, offset);
  if (moved < 0) return -errno;
  if (call->write) penstock_wrote_inside(file, call->fd, (int64_t)offset, (size_t)moved);
  return moved;
}

// The whole of a call. Like the kernel's, it stops at the first part that is short or fails.
static ssize_t move(const penstock_control* page, const penstock_call* call, penstock_file* file,
                    size_t bytes, uint64_t offset) {
  size_t done = 0, forwarded = 0;
  bool any = false;
  int64_t result = 0;
  while (done < bytes) {
    bool by_node;
    size_t part = bytes - done;
    result = step(page, call, file, done, &part, offset + done, &by_node);
    any |= by_node;
    if (by_node && result > 0) forwarded += (size_t)result;
    if (result > 0) done += (size_t)result;
    if (result < (int64_t)part) break;
    if (done < bytes) penstock_let_die();
  }
  if (any) {
    penstock_count_forwarded(call->write ? PENSTOCK_WRITES : PENSTOCK_READS, forwarded);
    penstock_count_carried(forwarded);
  }
  if (done > 0 || result >= 0) return (ssize_t)done;
  errno = (int)-result;
  return -1;
}

static bool forward(const penstock_control* page, const penstock_call* call, penstock_file* file,
                    ssize_t* result) {
  const size_t bytes = forwardable(call, file);
  if (bytes == 0 || !flags_allow(call, file)) return false;
  const bool positioned = call->offset == PENSTOCK_AT_POSITION;
  int64_t offset = call->offset;
  if (positioned) {
    // Reserved at once, because other threads and processes may stand at the same position.
    const long end = syscall(SYS_lseek, call->fd, (off_t)bytes, SEEK_CUR);
    if (end < 0) return false;
    offset = end - (int64_t)bytes;
  }
  const bool allowed = offset >= 0 && offset <= INT64_MAX - (int64_t)bytes &&
                       (!call->write || (uint64_t)offset + bytes <= atomic_load(&largest_file)) &&
                       ((file->access & O_DIRECT) == 0 || offset % BLOCK == 0);
  *result = allowed ? move(page, call, file, bytes, (uint64_t)offset) : 0;
  const size_t moved = *result > 0 ? (size_t)*result : 0;
  if (positioned && moved < bytes) {
    const int error = errno;
    syscall(SYS_lseek, call->fd, (off_t)moved - (off_t)bytes, SEEK_CUR);
    errno = error;
  }
  return allowed;
}

// A number that was closed past the C library may be another file's now.
static bool is_same_file(int fd, const penstock_file* file) {
  struct stat status;
  return penstock_status(fd, &status) && status.st_dev == file->device &&
         status.st_ino == file->inode;
}

// The I/O node acts as the user who started this process: with other rights since, it would do what
// the process may not, or the other way round.
static bool has_its_first_rights(void) {
  static _Atomic uint64_t first;  // user and group, plus one
  // Those that files are accessed with: they follow the effective ones, but servers of files set
  // them apart. To none is no change.
  const uint64_t now =
      ((uint64_t)syscall(SYS_setfsuid, -1) << 32 | (uint32_t)syscall(SYS_setfsgid, -1)) + 1;
  uint64_t before = 0;
  return atomic_compare_exchange_strong(&first, &before, now) || before == now;
}

static bool carry(const penstock_control* page, const penstock_call* call, ssize_t* result) {
  penstock_file* file = penstock_pin(call->fd);
  if (file == NULL) return false;
  const bool done = !atomic_load_explicit(&file->direct, memory_order_relaxed) &&
                    is_same_file(call->fd, file) && has_its_first_rights() &&
                    forward(page, call, file, result);
  penstock_unpin(call->fd);
  const int error = errno;
  penstock_release_inside(file);
  errno = error;
  return done;
}

static penstock_wish wish_of(const penstock_call* call) {
  return (penstock_wish){
      .fd = call->fd,
      .kind = call->write ? PENSTOCK_CALL_WRITE : PENSTOCK_CALL_READ,
      // Negative: the kernel will refuse it.
      .offset = call->offset < PENSTOCK_AT_POSITION ? 0 : call->offset,
      .bytes = call->bytes < MOST_BYTES ? call->bytes : MOST_BYTES,
  };
}

// Whether a call goes to the kernel without a question: with permission, or open.
static bool is_decided(const penstock_control* page, const penstock_wish* wish,
                       penstock_grant* grant) {
  if (penstock_has_credit(page, wish, grant)) return true;
  const bool open = penstock_has_none(page);
  if (open) penstock_count_failed_open();
  return open;
}

bool penstock_forward(const penstock_call* call, penstock_grant* grant, ssize_t* result) {
  grant->credit = NULL;
  const penstock_control* page = penstock_active();
  if (page == NULL || !penstock_concerned(page)) return false;
  const penstock_wish wish = wish_of(call);
  if (is_decided(page, &wish, grant)) return false;
  const int error = errno;
  // A call that asks or is carried is no point of cancellation by itself; this one is, and unlike
  // pthread_testcancel it is in every C library proper.
  poll(NULL, 0, 0);
  if (!penstock_enter()) return false;
  const enum penstock_permission permission = penstock_ask_permission(page, &wish, grant);
  if (permission == PENSTOCK_REFUSED) penstock_count_failed_open();
  const bool done = permission == PENSTOCK_ELSEWHERE || permission == PENSTOCK_NO_NODE
                        ? carry(page, call, result)
                        : false;
  const int after = done && *result < 0 ? errno : error;
  penstock_leave();
  errno = after;
  return done;
}

void penstock_done(const penstock_call* call, const penstock_grant* grant, ssize_t result) {
  if (grant->credit != NULL) {
    const penstock_wish wish = wish_of(call);
    const size_t permitted = penstock_end_grant(grant, &wish, result);
    if (result >= 0)
      penstock_count_forwarded(call->write ? PENSTOCK_WRITES : PENSTOCK_READS, permitted);
  }
  if (call->write && result > 0) penstock_wrote(call->fd, call->offset, (size_t)result);
}

// Permission to sync, for the storage is as busy with that as with any write.
static void ask_to_sync(int fd, penstock_grant* grant) {
  const penstock_control* page = penstock_active();
  const penstock_wish wish = {.fd = fd, .kind = PENSTOCK_CALL_SYNC, .offset = 0};
  if (page == NULL || page->map.nodes == 0 || is_decided(page, &wish, grant)) return;
  if (!penstock_enter()) return;
  if (penstock_ask_permission(page, &wish, grant) == PENSTOCK_REFUSED) penstock_count_failed_open();
  penstock_leave();
}

// Where we may not ask any more, what only other hosts have is not known to be safe.
static int sync_retired(int fd) {
  penstock_file* file = penstock_hold(fd);
  if (file == NULL) return 0;
  const int error = penstock_unsynced_elsewhere(file) ? EIO : 0;
  penstock_release(file);
  return error;
}

int penstock_forward_sync(int fd, bool data_only, penstock_grant* grant) {
  grant->credit = NULL;
  if (penstock_retired()) return sync_retired(fd);
  ask_to_sync(fd, grant);
  if (!penstock_enter()) return 0;
  penstock_file* file = penstock_hold(fd);
  int error = 0;
  if (file != NULL) {
    error = penstock_sync_everywhere(file, fd, data_only ? PENSTOCK_FDATASYNC : PENSTOCK_FSYNC);
    penstock_release_inside(file);
  }
  penstock_leave();
  return error;
}

void penstock_synced(int fd, const penstock_grant* grant) {
  if (grant->credit == NULL) return;
  const penstock_wish wish = {.fd = fd, .kind = PENSTOCK_CALL_SYNC, .offset = 0};
  penstock_end_grant(grant, &wish, 0);
}
