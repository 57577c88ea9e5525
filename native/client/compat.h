// Names of Linux that the oldest C library we build for (2.17) does not define.

#ifndef PENSTOCK_COMPAT_H
#define PENSTOCK_COMPAT_H

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4u
#endif
#define CLOSE_RANGE_FLAGS (CLOSE_RANGE_CLOEXEC | 2u)  // and to unshare
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef RWF_DSYNC
#define RWF_DSYNC 0x2
#define RWF_SYNC 0x4
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

// Flags of the C library's FILE, by their names in its own headers.
#define IO_UNBUFFERED 0x0002
#define IO_LINE_BUF 0x0200

#endif
