// What the compiler calls instead where it checks arguments: of both preload libraries.

#ifndef PENSTOCK_CHECKED_READS_H
#define PENSTOCK_CHECKED_READS_H

#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

// The C library's own end for a buffer that is too small; musl has none, and no program calls
// these.
extern void __chk_fail(void) __attribute__((noreturn, weak));

#define PENSTOCK_CHECKED(name, parameters, call)                   \
  __attribute__((visibility("default"))) ssize_t name parameters { \
    if (bytes > room && __chk_fail != NULL) __chk_fail();          \
    if (bytes > room) abort();                                     \
    return call;                                                   \
  }
PENSTOCK_CHECKED(__read_chk, (int fd, void* data, size_t bytes, size_t room), read(fd, data, bytes))
PENSTOCK_CHECKED(__pread_chk, (int fd, void* data, size_t bytes, off_t at, size_t room),
                 pread(fd, data, bytes, at))
PENSTOCK_CHECKED(__pread64_chk, (int fd, void* data, size_t bytes, off64_t at, size_t room),
                 pread64(fd, data, bytes, at))

#endif
