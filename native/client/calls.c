// The calls that we stand in front of. Each does what the next one does, and tells `state` of it.

#define _GNU_SOURCE
// The C library's inline checks would define some of these names before us.
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.h"
#include "state.h"

#define EXPORT __attribute__((visibility("default")))

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name, parameters, arguments)   \
  EXPORT int name parameters {              \
    va_list rest;                           \
    va_start(rest, flags);                  \
    const mode_t mode = mode_of(flags, rest); \
    va_end(rest);                           \
    const int fd = penstock_real()->name arguments; \
    penstock_opened(fd, flags);             \
    return fd;                              \
  }
OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode))

EXPORT int creat(const char* path, mode_t mode) {
  const int fd = penstock_real()->creat(path, mode);
  penstock_opened(fd, O_WRONLY);
  return fd;
}
EXPORT int creat64(const char* path, mode_t mode) {
  const int fd = penstock_real()->creat64(path, mode);
  penstock_opened(fd, O_WRONLY);
  return fd;
}

// What the compiler calls instead where it checks arguments.
EXPORT int __open_2(const char* path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char* path, int flags) { return open64(path, flags); }
EXPORT int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }
EXPORT int __openat64_2(int at, const char* path, int flags) { return openat64(at, path, flags); }
EXPORT ssize_t __read_chk(int fd, void* data, size_t bytes, size_t room) {
  if (bytes > room) abort();
  return read(fd, data, bytes);
}
EXPORT ssize_t __pread_chk(int fd, void* data, size_t bytes, off_t at, size_t room) {
  if (bytes > room) abort();
  return pread(fd, data, bytes, at);
}
EXPORT ssize_t __pread64_chk(int fd, void* data, size_t bytes, off64_t at, size_t room) {
  if (bytes > room) abort();
  return pread64(fd, data, bytes, at);
}

EXPORT int close(int fd) {
  // Before the call: another thread may get the same number from the kernel at once after it.
  penstock_closed(fd);
  return penstock_real()->close(fd);
}
EXPORT int close_range(unsigned first, unsigned last, int flags) {
  if ((flags & 4 /* CLOSE_RANGE_CLOEXEC */) == 0) penstock_closed_from(first, last);
  if (penstock_real()->close_range != NULL) return penstock_real()->close_range(first, last, flags);
  return (int)syscall(SYS_close_range, first, last, flags);
}
EXPORT void closefrom(int first) {
  penstock_closed_from(first < 0 ? 0u : (unsigned)first, UINT_MAX);
  penstock_real()->closefrom(first);
}
EXPORT int dup(int from) {
  const int fd = penstock_real()->dup(from);
  penstock_copied(from, fd);
  return fd;
}
EXPORT int dup2(int from, int to) {
  const int fd = penstock_real()->dup2(from, to);
  penstock_copied(from, fd);
  return fd;
}
EXPORT int dup3(int from, int to, int flags) {
  const int fd = penstock_real()->dup3(from, to, flags);
  penstock_copied(from, fd);
  return fd;
}

static int after_fcntl(int fd, int command, const void* argument, int result) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      penstock_copied(fd, result);
      break;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      if (result == 0 && ((const struct flock*)argument)->l_type != F_UNLCK) penstock_locked();
      break;
    default:
      break;
  }
  return result;
}
#define FCNTL(name)                                                                  \
  EXPORT int name(int fd, int command, ...) {                                        \
    va_list rest;                                                                    \
    va_start(rest, command);                                                         \
    void* argument = va_arg(rest, void*);                                            \
    va_end(rest);                                                                    \
    const int result = penstock_real()->name(fd, command, argument);                 \
    return after_fcntl(fd, command, argument, result);                               \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int flock(int fd, int operation) {
  const int result = penstock_real()->flock(fd, operation);
  if (result == 0 && (operation & LOCK_UN) == 0) penstock_locked();
  return result;
}

static size_t length(const struct iovec* pieces, int count) {
  size_t bytes = 0;
  for (int k = 0; pieces != NULL && k < count; ++k) bytes += pieces[k].iov_len;
  return bytes;
}

// A data call: straight to the next one unless the file is ours.
#define DATA(name, kind, bytes, parameters, arguments)               \
  EXPORT ssize_t name parameters {                                   \
    const struct penstock_real* real = penstock_real();              \
    if (!penstock_managed(fd)) return real->name arguments;          \
    penstock_begin(bytes);                                           \
    const ssize_t result = real->name arguments;                     \
    const int error = errno;                                         \
    penstock_end(kind, result);                                      \
    errno = error;                                                   \
    return result;                                                   \
  }
#define READ(name, ...) DATA(name, PENSTOCK_READ, __VA_ARGS__)
#define WRITE(name, ...) DATA(name, PENSTOCK_WRITE, __VA_ARGS__)
READ(read, n, (int fd, void* data, size_t n), (fd, data, n))
READ(pread, n, (int fd, void* data, size_t n, off_t at), (fd, data, n, at))
READ(pread64, n, (int fd, void* data, size_t n, off64_t at), (fd, data, n, at))
READ(readv, length(v, n), (int fd, const struct iovec* v, int n), (fd, v, n))
READ(preadv, length(v, n), (int fd, const struct iovec* v, int n, off_t at), (fd, v, n, at))
READ(preadv64, length(v, n), (int fd, const struct iovec* v, int n, off64_t at), (fd, v, n, at))
READ(preadv2, length(v, n), (int fd, const struct iovec* v, int n, off_t at, int f), (fd, v, n, at, f))
READ(preadv64v2, length(v, n), (int fd, const struct iovec* v, int n, off64_t at, int f), (fd, v, n, at, f))
WRITE(write, n, (int fd, const void* data, size_t n), (fd, data, n))
WRITE(pwrite, n, (int fd, const void* data, size_t n, off_t at), (fd, data, n, at))
WRITE(pwrite64, n, (int fd, const void* data, size_t n, off64_t at), (fd, data, n, at))
WRITE(writev, length(v, n), (int fd, const struct iovec* v, int n), (fd, v, n))
WRITE(pwritev, length(v, n), (int fd, const struct iovec* v, int n, off_t at), (fd, v, n, at))
WRITE(pwritev64, length(v, n), (int fd, const struct iovec* v, int n, off64_t at), (fd, v, n, at))
WRITE(pwritev2, length(v, n), (int fd, const struct iovec* v, int n, off_t at, int f), (fd, v, n, at, f))
WRITE(pwritev64v2, length(v, n), (int fd, const struct iovec* v, int n, off64_t at, int f), (fd, v, n, at, f))

// These move data inside the kernel: they wait like others, are counted, and left to it.
#define LEFT(name, parameters, arguments)                                             \
  EXPORT ssize_t name parameters {                                                    \
    const struct penstock_real* real = penstock_real();                               \
    if (!penstock_managed(in) && !penstock_managed(out)) return real->name arguments; \
    penstock_begin(n);                                                                \
    const ssize_t result = real->name arguments;                                      \
    const int error = errno;                                                          \
    penstock_end(PENSTOCK_LEFT, result);                                              \
    errno = error;                                                                    \
    return result;                                                                    \
  }
LEFT(copy_file_range, (int in, off64_t* from, int out, off64_t* to, size_t n, unsigned flags),
     (in, from, out, to, n, flags))
LEFT(sendfile, (int out, int in, off_t* from, size_t n), (out, in, from, n))
LEFT(sendfile64, (int out, int in, off64_t* from, size_t n), (out, in, from, n))

#define SYNC(name)                                             \
  EXPORT int name(int fd) {                                    \
    const int result = penstock_real()->name(fd);              \
    if (penstock_managed(fd)) {                                \
      const int error = errno;                                 \
      penstock_begin(0);                                       \
      penstock_end(PENSTOCK_SYNC, result);                     \
      errno = error;                                           \
    }                                                          \
    return result;                                             \
  }
SYNC(fsync)
SYNC(fdatasync)
