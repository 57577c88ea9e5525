// The calls that take time on a parallel file system. Each does what the next one does, and returns
// when the emulated machine would have done it. Buffers of the C library's streams end in calls
// inside of it, which are not seen here.

#define _GNU_SOURCE
// The C library's inline checks would define some of these names before us.
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "charge.h"
#include "checked_reads.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))

// Where a call without an offset began: it has moved the position, also of a file that is appended
// to.
static uint64_t began_at(int fd, ssize_t moved) {
  const long end = syscall(SYS_lseek, fd, 0L, SEEK_CUR);
  return end > moved ? (uint64_t)(end - moved) : 0;
}

// The real call's own time is part of the emulated one: it began when we were called.
#define DATA(name, kind, parameters, arguments, offset)                    \
  EXPORT ssize_t name parameters {                                         \
    const struct penstock_real* real = penstock_real();                    \
    const struct penstock_file file = penstock_look_at(fd);                \
    if (!file.charged) return real->name arguments;                        \
    const uint64_t arrival = penstock_arrive();                            \
    const ssize_t moved = real->name arguments;                            \
    if (moved <= 0) return moved;                                          \
    const int error = errno;                                               \
    const int64_t given = offset;                                          \
    const uint64_t at = given < 0 ? began_at(fd, moved) : (uint64_t)given; \
    penstock_serve(file, kind, arrival, at, (uint64_t)moved);              \
    errno = error;                                                         \
    return moved;                                                          \
  }
#define POSITION (-1)
#define READ PENSTOCK_EMULATED_READ
#define WRITE PENSTOCK_EMULATED_WRITE
DATA(read, READ, (int fd, void* data, size_t n), (fd, data, n), POSITION)
DATA(pread, READ, (int fd, void* data, size_t n, off_t from), (fd, data, n, from), from)
DATA(pread64, READ, (int fd, void* data, size_t n, off64_t from), (fd, data, n, from), from)
DATA(readv, READ, (int fd, const struct iovec* v, int n), (fd, v, n), POSITION)
DATA(preadv, READ, (int fd, const struct iovec* v, int n, off_t from), (fd, v, n, from), from)
DATA(preadv64, READ, (int fd, const struct iovec* v, int n, off64_t from), (fd, v, n, from), from)
DATA(preadv2, READ, (int fd, const struct iovec* v, int n, off_t from, int f), (fd, v, n, from, f),
     from)
DATA(preadv64v2, READ, (int fd, const struct iovec* v, int n, off64_t from, int f),
     (fd, v, n, from, f), from)
DATA(write, WRITE, (int fd, const void* data, size_t n), (fd, data, n), POSITION)
DATA(pwrite, WRITE, (int fd, const void* data, size_t n, off_t from), (fd, data, n, from), from)
DATA(pwrite64, WRITE, (int fd, const void* data, size_t n, off64_t from), (fd, data, n, from), from)
DATA(writev, WRITE, (int fd, const struct iovec* v, int n), (fd, v, n), POSITION)
DATA(pwritev, WRITE, (int fd, const struct iovec* v, int n, off_t from), (fd, v, n, from), from)
DATA(pwritev64, WRITE, (int fd, const struct iovec* v, int n, off64_t from), (fd, v, n, from), from)
DATA(pwritev2, WRITE, (int fd, const struct iovec* v, int n, off_t from, int f),
     (fd, v, n, from, f), from)
DATA(pwritev64v2, WRITE, (int fd, const struct iovec* v, int n, off64_t from, int f),
     (fd, v, n, from, f), from)

// Report the layout of a file as Lustre does, for request schedulers.
EXPORT ssize_t fgetxattr(int fd, const char* name, void* value, size_t room) {
  if (strcmp(name, "lustre.lov") == 0) {
    const struct penstock_file file = penstock_look_at(fd);
    if (file.charged) return penstock_layout(file, value, room);
  }
  return penstock_real()->fgetxattr(fd, name, value, room);
}

// A copy inside the kernel reads one file, then writes the other; either may be ours.
static uint64_t serve_side(struct penstock_file file, enum penstock_emulated kind, int fd,
                           uint64_t arrival, const off64_t* end, ssize_t moved) {
  if (!file.charged) return arrival;
  const uint64_t at = end != NULL ? (uint64_t)(*end - moved) : began_at(fd, moved);
  return penstock_serve(file, kind, arrival, at, (uint64_t)moved);
}

#define COPY(name, parameters, arguments, from, to)                           \
  EXPORT ssize_t name parameters {                                            \
    const struct penstock_real* real = penstock_real();                       \
    const struct penstock_file source = penstock_look_at(in);                 \
    const struct penstock_file sink = penstock_look_at(out);                  \
    if (!source.charged && !sink.charged) return real->name arguments;        \
    const uint64_t arrival = penstock_arrive();                               \
    const ssize_t moved = real->name arguments;                               \
    if (moved <= 0) return moved;                                             \
    const int error = errno;                                                  \
    const uint64_t read = serve_side(source, READ, in, arrival, from, moved); \
    serve_side(sink, WRITE, out, read, to, moved);                            \
    errno = error;                                                            \
    return moved;                                                             \
  }
COPY(copy_file_range, (int in, off64_t* from, int out, off64_t* to, size_t n, unsigned flags),
     (in, from, out, to, n, flags), from, to)
COPY(sendfile, (int out, int in, off_t* from, size_t n), (out, in, from, n), from, NULL)
COPY(sendfile64, (int out, int in, off64_t* from, size_t n), (out, in, from, n), from, NULL)

#define SYNC(name)                                          \
  EXPORT int name(int fd) {                                 \
    const struct penstock_file file = penstock_look_at(fd); \
    if (!file.charged) return penstock_real()->name(fd);    \
    const uint64_t arrival = penstock_arrive();             \
    const int result = penstock_real()->name(fd);           \
    const int error = errno;                                \
    if (result == 0) penstock_flush(file, arrival);         \
    errno = error;                                          \
    return result;                                          \
  }
SYNC(fsync)
SYNC(fdatasync)
