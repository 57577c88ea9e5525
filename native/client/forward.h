// Whether a data call goes to an I/O node, and how its result comes about if it does.

#ifndef PENSTOCK_FORWARD_H
#define PENSTOCK_FORWARD_H

#include <stdbool.h>
#include <sys/uio.h>

#include "files.h"

#define PENSTOCK_AT_POSITION (-1)  // read and write: where the descriptor stands

typedef struct {
  int fd;
  bool write;
  const struct iovec* pieces;
  int count;
  int64_t offset;
  int flags;  // RWF_*
} penstock_call;

// Do the call through the job's I/O nodes; false: they had no part in it, and it is to be done as
// if they did not exist. Sets errno with a result of -1.
bool penstock_forward(const penstock_call* call, ssize_t* result);

// Sync at the I/O nodes, before the kernel's own fsync or fdatasync; 0 or an error.
int penstock_forward_sync(int fd, bool data_only);

// The process changed its limits: RLIMIT_FSIZE is looked at from now on.
void penstock_limited(void);

#endif
