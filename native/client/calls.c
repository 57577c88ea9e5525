// The wrapped calls: each does what the C library does, and records it.

#define _GNU_SOURCE
// The C library's inline checks would define some of these names before us.
#undef _FORTIFY_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checked_reads.h"
#include "compat.h"
#include "files.h"
#include "forward.h"
#include "gate.h"
#include "locks.h"
#include "nodes.h"
#include "process.h"
#include "real.h"
#include "streams.h"
#include "window.h"

#define EXPORT __attribute__((visibility("default")))

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name, parameters, arguments)           \
  EXPORT int name parameters {                      \
    va_list rest;                                   \
    va_start(rest, flags);                          \
    const mode_t mode = mode_of(flags, rest);       \
    va_end(rest);                                   \
    const int fd = penstock_real()->name arguments; \
    penstock_opened(fd);                            \
    return fd;                                      \
  }
OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode))

EXPORT int creat(const char* path, mode_t mode) {
  const int fd = penstock_real()->creat(path, mode);
  penstock_opened(fd);
  return fd;
}
EXPORT int creat64(const char* path, mode_t mode) {
  const int fd = penstock_real()->creat64(path, mode);
  penstock_opened(fd);
  return fd;
}

// The C library opens these itself.
#define TEMPORARY(name, parameters, arguments)      \
  EXPORT int name parameters {                      \
    const int fd = penstock_real()->name arguments; \
    penstock_opened(fd);                            \
    return fd;                                      \
  }
#define TEMPORARIES(name, parameters, arguments) \
  TEMPORARY(name, parameters, arguments)         \
  TEMPORARY(name##64, parameters, arguments)
TEMPORARIES(mkstemp, (char* path), (path))
TEMPORARIES(mkostemp, (char* path, int flags), (path, flags))
TEMPORARIES(mkstemps, (char* path, int suffix), (path, suffix))
TEMPORARIES(mkostemps, (char* path, int suffix, int flags), (path, suffix, flags))

// What the compiler calls instead where it checks arguments.
EXPORT int __open_2(const char* path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char* path, int flags) { return open64(path, flags); }
EXPORT int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }
EXPORT int __openat64_2(int at, const char* path, int flags) { return openat64(at, path, flags); }

EXPORT int close(int fd) {
  if (penstock_is_own(fd)) {
    errno = EBADF;
    return -1;
  }
  penstock_file* file = penstock_closing(fd);
  const int result = penstock_real()->close(fd);
  if (file == NULL) return result;
  const int error = errno;
  const int theirs = penstock_release(file);
  errno = error;
  return penstock_outcome(result, theirs);
}

static int close_between(unsigned first, unsigned last, int flags) {
  if (penstock_real()->close_range != NULL) return penstock_real()->close_range(first, last, flags);
  return (int)syscall(SYS_close_range, first, last, flags);
}

// Our own connections stay open: programs close descriptors that they do not know.
EXPORT int close_range(unsigned first, unsigned last, int flags) {
  const bool refused = first > last || (flags & ~(int)CLOSE_RANGE_FLAGS) != 0;
  if (refused) return close_between(first, last, flags);
  if ((flags & CLOSE_RANGE_CLOEXEC) == 0) penstock_closed(first, last);
  int result = 0;
  for (unsigned fd = first; fd <= last && fd < PENSTOCK_DESCRIPTORS; ++fd) {
    if (!penstock_is_own((int)fd)) continue;
    if (fd > first && close_between(first, fd - 1, flags) != 0) result = -1;
    first = fd + 1;
  }
  return first > last ? result : close_between(first, last, flags) != 0 ? -1 : result;
}
EXPORT void closefrom(int first) {
  const unsigned from = first < 0 ? 0u : (unsigned)first;
  if (close_range(from, UINT_MAX, 0) == 0 || errno != ENOSYS) return;
  for (int fd = (int)from; fd < PENSTOCK_DESCRIPTORS; ++fd) close(fd);
}

static int copied(int from, int to) {
  penstock_copied(from, to);
  if (to == 1) penstock_streams_redirected();
  return to;
}
EXPORT int dup(int from) { return copied(from, penstock_real()->dup(from)); }

// What has the number now goes out of the table first: calls of other threads on it go to the
// kernel, which knows at every moment which file is meant.
static penstock_file* make_room(int from, int to) {
  if (from == to) return NULL;
  if (penstock_is_own(to) && penstock_enter()) {
    penstock_give_up_number(to);
    penstock_leave();
  }
  return penstock_closing(to);
}
static int replaced(int from, int to, int result, penstock_file* before) {
  const int error = errno;
  if (result < 0 && before != NULL) penstock_not_closed(to, before);
  if (result >= 0 && before != NULL) penstock_release(before);
  if (result >= 0) copied(from, result);
  errno = error;
  return result;
}
EXPORT int dup2(int from, int to) {
  penstock_file* before = make_room(from, to);
  return replaced(from, to, penstock_real()->dup2(from, to), before);
}
EXPORT int dup3(int from, int to, int flags) {
  penstock_file* before = make_room(from, to);
  return replaced(from, to, penstock_real()->dup3(from, to, flags), before);
}

// An unlock of a part may leave other locks: penstock_holds_lock asks the kernel.
static void after_lock(int fd, enum penstock_lock kind, const struct flock* lock) {
  const bool whole = lock->l_whence == SEEK_SET && lock->l_start == 0 && lock->l_len == 0;
  if (lock->l_type != F_UNLCK)
    penstock_locked(fd, kind);
  else if (whole)
    penstock_unlocked(fd, kind);
}

static int after_fcntl(int fd, int command, const void* argument, int result) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      copied(fd, result);
      break;
    case F_SETLK:
    case F_SETLKW:
      if (result == 0) after_lock(fd, PENSTOCK_POSIX, argument);
      break;
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      if (result == 0) after_lock(fd, PENSTOCK_OFD, argument);
      break;
    default:
      break;
  }
  return result;
}
#define FCNTL(name)                                                  \
  EXPORT int name(int fd, int command, ...) {                        \
    va_list rest;                                                    \
    va_start(rest, command);                                         \
    void* argument = va_arg(rest, void*);                            \
    va_end(rest);                                                    \
    const int result = penstock_real()->name(fd, command, argument); \
    return after_fcntl(fd, command, argument, result);               \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int flock(int fd, int operation) {
  const int result = penstock_real()->flock(fd, operation);
  if (result == 0 && (operation & LOCK_UN) == 0) penstock_locked(fd, PENSTOCK_FLOCK);
  if (result == 0 && (operation & LOCK_UN) != 0) penstock_unlocked(fd, PENSTOCK_FLOCK);
  return result;
}

// The C library asks the kernel itself for these.
#define LOCKF(name, offset)                                       \
  EXPORT int name(int fd, int command, offset bytes) {            \
    const int result = penstock_real()->name(fd, command, bytes); \
    if (result == 0 && (command == F_LOCK || command == F_TLOCK)) \
      penstock_locked(fd, PENSTOCK_POSIX);                        \
    return result;                                                \
  }
LOCKF(lockf, off_t)
LOCKF(lockf64, off64_t)

static size_t bytes_of(const struct iovec* pieces, int count) {
  const bool counted = penstock_is_busy();
  if (!counted && !penstock_busy()) return PENSTOCK_REFUSED_VECTOR;
  const size_t bytes = penstock_vector_bytes(pieces, count);
  if (!counted) penstock_idle();
  return bytes;
}

// Negative offset: let the kernel report EINVAL.
static int64_t at_or_nowhere(int64_t at) { return at < 0 ? INT64_MIN : at; }

// A data call: straight to the next one unless the file is ours; to an I/O node if there is one.
#define DATA(name, kind, size, vector, parts, where, how, parameters, arguments)    \
  EXPORT ssize_t name parameters {                                                  \
    const struct penstock_real* real = penstock_real();                             \
    if (!penstock_managed(fd)) return real->name arguments;                         \
    const size_t bytes = size;                                                      \
    const int count = bytes == PENSTOCK_REFUSED_VECTOR ? 0 : parts;                 \
    const penstock_call call = {fd,  kind == PENSTOCK_WRITES, vector, count, where, \
                                how, count == 0 ? 0 : bytes};                       \
    penstock_begin(fd, call.bytes);                                                 \
    ssize_t result;                                                                 \
    penstock_grant grant;                                                           \
    if (!penstock_forward(&call, &grant, &result)) {                                \
      result = real->name arguments;                                                \
      penstock_done(&call, &grant, result);                                         \
    }                                                                               \
    const int error = errno;                                                        \
    penstock_end(fd, kind, result);                                                 \
    errno = error;                                                                  \
    return result;                                                                  \
  }
#define FLAT(name, kind, where, parameters, arguments) \
  DATA(name, kind, n, (&(struct iovec){(void*)data, n}), 1, where, 0, parameters, arguments)
#define VECTOR(name, kind, where, how, parameters, arguments) \
  DATA(name, kind, bytes_of(v, n), v, n, where, how, parameters, arguments)
#define READ(name, where, ...) FLAT(name, PENSTOCK_READS, where, __VA_ARGS__)
#define WRITE(name, where, ...) FLAT(name, PENSTOCK_WRITES, where, __VA_ARGS__)
#define HERE PENSTOCK_AT_POSITION
READ(read, HERE, (int fd, void* data, size_t n), (fd, data, n))
READ(pread, at_or_nowhere(at), (int fd, void* data, size_t n, off_t at), (fd, data, n, at))
READ(pread64, at_or_nowhere(at), (int fd, void* data, size_t n, off64_t at), (fd, data, n, at))
WRITE(write, HERE, (int fd, const void* data, size_t n), (fd, data, n))
WRITE(pwrite, at_or_nowhere(at), (int fd, const void* data, size_t n, off_t at), (fd, data, n, at))
WRITE(pwrite64, at_or_nowhere(at), (int fd, const void* data, size_t n, off64_t at),
      (fd, data, n, at))
#define VECTORS(r, w, where, how, parameters, arguments)       \
  VECTOR(r, PENSTOCK_READS, where, how, parameters, arguments) \
  VECTOR(w, PENSTOCK_WRITES, where, how, parameters, arguments)
VECTORS(readv, writev, HERE, 0, (int fd, const struct iovec* v, int n), (fd, v, n))
VECTORS(preadv, pwritev, at_or_nowhere(at), 0, (int fd, const struct iovec* v, int n, off_t at),
        (fd, v, n, at))
VECTORS(preadv64, pwritev64, at_or_nowhere(at), 0,
        (int fd, const struct iovec* v, int n, off64_t at), (fd, v, n, at))
// Only in these calls -1 means the position of the descriptor.
VECTORS(preadv2, pwritev2, at, f, (int fd, const struct iovec* v, int n, off_t at, int f),
        (fd, v, n, at, f))
VECTORS(preadv64v2, pwritev64v2, at, f, (int fd, const struct iovec* v, int n, off64_t at, int f),
        (fd, v, n, at, f))

// These move data inside the kernel: they wait like others, are counted, and left to it.
#define LEFT(name, parameters, arguments)                                             \
  EXPORT ssize_t name parameters {                                                    \
    const struct penstock_real* real = penstock_real();                               \
    if (!penstock_managed(in) && !penstock_managed(out)) return real->name arguments; \
    penstock_begin_both(in, out, n);                                                  \
    const ssize_t result = real->name arguments;                                      \
    const int error = errno;                                                          \
    penstock_end_both(in, out, result);                                               \
    errno = error;                                                                    \
    return result;                                                                    \
  }
LEFT(copy_file_range, (int in, off64_t* from, int out, off64_t* to, size_t n, unsigned flags),
     (in, from, out, to, n, flags))
LEFT(sendfile, (int out, int in, off_t* from, size_t n), (out, in, from, n))
LEFT(sendfile64, (int out, int in, off64_t* from, size_t n), (out, in, from, n))

// So do those that come back before they are done; their bytes are counted as they are asked for.
static void left(int fd, size_t bytes) {
  if (!penstock_managed(fd)) return;
  penstock_begin(fd, bytes);
  penstock_end(fd, PENSTOCK_LEFT, (ssize_t)bytes);
}
#define AIO(name, block)                            \
  EXPORT int name(struct block* request) {          \
    left(request->aio_fildes, request->aio_nbytes); \
    return penstock_real()->name(request);          \
  }
AIO(aio_read, aiocb)
AIO(aio_read64, aiocb64)
AIO(aio_write, aiocb)
AIO(aio_write64, aiocb64)
// The C library refuses other modes before it looks at the list.
#define LISTIO(name, block)                                                                  \
  EXPORT int name(int mode, struct block* const list[], int count, struct sigevent* event) { \
    const bool right = mode == LIO_WAIT || mode == LIO_NOWAIT;                               \
    for (int k = 0; right && k < count; ++k) {                                               \
      if (list[k] != NULL && list[k]->aio_lio_opcode != LIO_NOP)                             \
        left(list[k]->aio_fildes, list[k]->aio_nbytes);                                      \
    }                                                                                        \
    return penstock_real()->name(mode, list, count, event);                                  \
  }
LISTIO(lio_listio, aiocb)
LISTIO(lio_listio64, aiocb64)

// First sync at the I/O nodes that wrote, then in the kernel what this process wrote directly.
#define SYNC(name, data_only)                                    \
  EXPORT int name(int fd) {                                      \
    if (!penstock_managed(fd)) return penstock_real()->name(fd); \
    penstock_begin(fd, 0);                                       \
    penstock_grant grant;                                        \
    int theirs = penstock_forward_sync(fd, data_only, &grant);   \
    int result = penstock_real()->name(fd);                      \
    int error = errno;                                           \
    penstock_synced(fd, &grant);                                 \
    const int late = penstock_late_error(fd);                    \
    if (theirs == 0) theirs = late;                              \
    if (result == 0 && theirs != 0) {                            \
      result = -1;                                               \
      error = theirs;                                            \
    }                                                            \
    penstock_end(fd, PENSTOCK_SYNCS, result);                    \
    errno = error;                                               \
    return result;                                               \
  }
SYNC(fsync, false)
SYNC(fdatasync, true)

// A program that locks itself in (seccomp) allows the system calls that it knows of. Ours would end
// it.
EXPORT int prctl(int option, ...) {
  va_list rest;
  va_start(rest, option);
  unsigned long given[4];
  for (int k = 0; k < 4; ++k) given[k] = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_SECCOMP) penstock_retire();
  return penstock_real()->prctl(option, given[0], given[1], given[2], given[3]);
}

// The C library has no function for seccomp.
EXPORT long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  unsigned long given[6];
  for (int k = 0; k < 6; ++k) given[k] = va_arg(rest, unsigned long);
  va_end(rest);
  if ((number == SYS_seccomp && given[0] <= SECCOMP_SET_MODE_FILTER) ||
      (number == SYS_prctl && given[0] == PR_SET_SECCOMP))
    penstock_retire();
  return penstock_real()->syscall(number, given[0], given[1], given[2], given[3], given[4],
                                  given[5]);
}

#define LIMIT(name, parameters, arguments)              \
  EXPORT int name parameters {                          \
    const int result = penstock_real()->name arguments; \
    const int error = errno;                            \
    penstock_limited();                                 \
    errno = error;                                      \
    return result;                                      \
  }
LIMIT(setrlimit, (__rlimit_resource_t of, const struct rlimit* limit), ((int)of, limit))
LIMIT(setrlimit64, (__rlimit_resource_t of, const struct rlimit64* limit), ((int)of, limit))
LIMIT(prlimit,
      (pid_t pid, enum __rlimit_resource of, const struct rlimit* limit, struct rlimit* old),
      (pid, (int)of, limit, old))
LIMIT(prlimit64,
      (pid_t pid, enum __rlimit_resource of, const struct rlimit64* limit, struct rlimit64* old),
      (pid, (int)of, limit, old))
