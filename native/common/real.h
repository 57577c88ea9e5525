// The functions that we stand in front of: the next ones in the order of the linker, which may be
// another preloaded library's.

#ifndef PENSTOCK_REAL_H
#define PENSTOCK_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct aiocb;
struct aiocb64;
struct sigevent;

#include <stdio.h>
#include <sys/resource.h>

// X(result, name, arguments)
#define PENSTOCK_CALLS(X)                                                       \
  X(int, open, (const char*, int, ...))                                         \
  X(int, open64, (const char*, int, ...))                                       \
  X(int, openat, (int, const char*, int, ...))                                  \
  X(int, openat64, (int, const char*, int, ...))                                \
  X(int, creat, (const char*, mode_t))                                          \
  X(int, creat64, (const char*, mode_t))                                        \
  X(int, mkstemp, (char*))                                                      \
  X(int, mkstemp64, (char*))                                                    \
  X(int, mkostemp, (char*, int))                                                \
  X(int, mkostemp64, (char*, int))                                              \
  X(int, mkstemps, (char*, int))                                                \
  X(int, mkstemps64, (char*, int))                                              \
  X(int, mkostemps, (char*, int, int))                                          \
  X(int, mkostemps64, (char*, int, int))                                        \
  X(int, close, (int))                                                          \
  X(int, close_range, (unsigned, unsigned, int))                                \
  X(void, closefrom, (int))                                                     \
  X(int, dup, (int))                                                            \
  X(int, dup2, (int, int))                                                      \
  X(int, dup3, (int, int, int))                                                 \
  X(int, fcntl, (int, int, ...))                                                \
  X(int, fcntl64, (int, int, ...))                                              \
  X(int, flock, (int, int))                                                     \
  X(int, lockf, (int, int, off_t))                                              \
  X(int, lockf64, (int, int, off64_t))                                          \
  X(ssize_t, read, (int, void*, size_t))                                        \
  X(ssize_t, write, (int, const void*, size_t))                                 \
  X(ssize_t, pread, (int, void*, size_t, off_t))                                \
  X(ssize_t, pread64, (int, void*, size_t, off64_t))                            \
  X(ssize_t, pwrite, (int, const void*, size_t, off_t))                         \
  X(ssize_t, pwrite64, (int, const void*, size_t, off64_t))                     \
  X(ssize_t, readv, (int, const struct iovec*, int))                            \
  X(ssize_t, writev, (int, const struct iovec*, int))                           \
  X(ssize_t, preadv, (int, const struct iovec*, int, off_t))                    \
  X(ssize_t, preadv64, (int, const struct iovec*, int, off64_t))                \
  X(ssize_t, pwritev, (int, const struct iovec*, int, off_t))                   \
  X(ssize_t, pwritev64, (int, const struct iovec*, int, off64_t))               \
  X(ssize_t, preadv2, (int, const struct iovec*, int, off_t, int))              \
  X(ssize_t, preadv64v2, (int, const struct iovec*, int, off64_t, int))         \
  X(ssize_t, pwritev2, (int, const struct iovec*, int, off_t, int))             \
  X(ssize_t, pwritev64v2, (int, const struct iovec*, int, off64_t, int))        \
  X(ssize_t, copy_file_range, (int, off64_t*, int, off64_t*, size_t, unsigned)) \
  X(ssize_t, sendfile, (int, int, off_t*, size_t))                              \
  X(ssize_t, sendfile64, (int, int, off64_t*, size_t))                          \
  X(ssize_t, fgetxattr, (int, const char*, void*, size_t))                      \
  X(int, fsync, (int))                                                          \
  X(int, fdatasync, (int))                                                      \
  X(int, aio_read, (struct aiocb*))                                             \
  X(int, aio_read64, (struct aiocb64*))                                         \
  X(int, aio_write, (struct aiocb*))                                            \
  X(int, aio_write64, (struct aiocb64*))                                        \
  X(int, lio_listio, (int, struct aiocb* const*, int, struct sigevent*))        \
  X(int, lio_listio64, (int, struct aiocb64* const*, int, struct sigevent*))    \
  X(FILE*, fopen, (const char*, const char*))                                   \
  X(FILE*, fopen64, (const char*, const char*))                                 \
  X(FILE*, fdopen, (int, const char*))                                          \
  X(FILE*, freopen, (const char*, const char*, FILE*))                          \
  X(FILE*, freopen64, (const char*, const char*, FILE*))                        \
  X(int, fclose, (FILE*))                                                       \
  X(int, prctl, (int, ...))                                                     \
  X(long, syscall, (long, ...))                                                 \
  X(int, setrlimit, (int, const struct rlimit*))                                \
  X(int, setrlimit64, (int, const struct rlimit64*))                            \
  X(int, prlimit, (pid_t, int, const struct rlimit*, struct rlimit*))           \
  X(int, prlimit64, (pid_t, int, const struct rlimit64*, struct rlimit64*))

struct penstock_real {
#define PENSTOCK_MEMBER(result, name, arguments) result(*name) arguments;
  PENSTOCK_CALLS(PENSTOCK_MEMBER)
#undef PENSTOCK_MEMBER
};

// The table, filled on first use: constructors of other libraries may call us before our own.
const struct penstock_real* penstock_real(void);

// A symbol that a library of this process defines, or NULL.
void* penstock_find(const char* symbol);

#endif
