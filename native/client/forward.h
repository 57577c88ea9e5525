// What an I/O node has to do with a data call: one of this host permits it, one of another host
// does it.

#ifndef PENSTOCK_FORWARD_H
#define PENSTOCK_FORWARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "files.h"
#include "permits.h"

#define PENSTOCK_AT_POSITION (-1)  // read and write: where the descriptor stands

typedef struct {
  int fd;
  bool write;
  const struct iovec* pieces;
  int count;
  int64_t offset;
  int flags;  // RWF_*
  size_t bytes;
} penstock_call;

// The bytes of a program's vector, unless the kernel will refuse it or we are retired. It may be
// anywhere, and we must not crash where the kernel returns an error.
#define PENSTOCK_REFUSED_VECTOR SIZE_MAX
size_t penstock_vector_bytes(const struct iovec* pieces, int count);

// Do the call through the job's I/O nodes. False: it is the caller's to do, with the permission
// that it got, if any; penstock_done follows then. Sets errno with a result of -1.
bool penstock_forward(const penstock_call* call, penstock_grant* grant, ssize_t* result);

// The caller did the call itself. Keeps errno.
void penstock_done(const penstock_call* call, const penstock_grant* grant, ssize_t result);

// Sync at the I/O nodes of other hosts, before the kernel's own fsync or fdatasync; 0 or an error.
// Asks one of this host for permission.
int penstock_forward_sync(int fd, bool data_only, penstock_grant* grant);
void penstock_synced(int fd, const penstock_grant* grant);

// The process changed its limits: RLIMIT_FSIZE is looked at from now on.
void penstock_limited(void);

#endif
