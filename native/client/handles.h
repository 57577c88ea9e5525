// A file at the I/O nodes that know it: opened there, moved data through, synced and closed.

#ifndef PENSTOCK_HANDLES_H
#define PENSTOCK_HANDLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "nodes.h"

// The file's handle at the connection's I/O node, opened there when new; PENSTOCK_GONE, or -errno
// if it cannot be opened there. `wait`: as of penstock_ask.
int64_t penstock_handle_of(penstock_connection* connection, penstock_file* file, int fd, bool wait);

// One request's worth of a read or write: `bytes` of the pieces from `skip` on. The result is that
// of the call, or -errno, or PENSTOCK_GONE.
typedef struct {
  bool write;
  const struct iovec* pieces;
  size_t skip;
  size_t bytes;
  uint64_t offset;
  uint32_t flags;
} penstock_part;
int64_t penstock_move(penstock_connection* connection, penstock_file* file, uint32_t handle,
                      const penstock_part* part);

// Sync the file at every I/O node that wrote to it, or close it at all that opened it; the first
// error, or 0. Where data is at stake, an I/O node that does not answer is waited for, as for a
// write: only one that is gone proves that the data may be lost.
int penstock_sync_everywhere(penstock_file* file, int fd, uint32_t operation);
int penstock_close_everywhere(penstock_file* file);

// Whether I/O nodes on other hosts wrote data that has not been synced.
bool penstock_unsynced_elsewhere(penstock_file* file);

// The descriptor is about to be closed. Where an I/O node on another host wrote data and has gone
// since, sync the data through another I/O node of that host while the file can still be opened.
void penstock_settle(penstock_file* file, int fd);

#endif
