// The job's I/O nodes: the map, a session with each, and connections that carry one request a time.

#ifndef PENSTOCK_NODES_H
#define PENSTOCK_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "files.h"
#include "wire.h"

typedef struct penstock_connection penstock_connection;

// Are there any I/O nodes to go to? Costs a load.
static inline bool penstock_mapped(const penstock_control* page) { return page->map.nodes != 0; }

// A connection to the I/O node for this offset, idle and ours until given back; NULL: there is none
// to be had now, although it was `wanted` or because the job has none any more. `bytes` is cut down
// to what goes there. Where an earlier write to the same place is still unanswered, waits for it.
penstock_connection* penstock_connect(const penstock_control* page, const penstock_file* file, uint64_t offset,
                                      size_t* bytes, bool* wanted);
void penstock_disconnect(penstock_connection* connection);

// No answer will come: the I/O node has gone, or was given up where nothing can happen later.
#define PENSTOCK_GONE INT64_MIN

// The file's handle at the connection's I/O node, opened there when new; PENSTOCK_GONE, or -errno if
// it cannot be opened there.
int64_t penstock_handle_of(penstock_connection* connection, penstock_file* file, int fd);

// Move data; the result is that of the call, or -errno, or PENSTOCK_GONE.
int64_t penstock_send_data(penstock_connection* connection, penstock_file* file, uint32_t handle,
                           const struct iovec* pieces, size_t skip, size_t bytes, uint64_t offset, uint32_t flags);
int64_t penstock_receive_data(penstock_connection* connection, penstock_file* file, uint32_t handle,
                              const struct iovec* pieces, size_t skip, size_t bytes, uint64_t offset, uint32_t flags);

// Sync the file at every I/O node that wrote to it, or close it at all that opened it; the first
// error, or 0.
int penstock_sync_everywhere(penstock_file* file, uint32_t operation);
int penstock_close_everywhere(penstock_file* file);

// The program wants this very number for a descriptor of its own.
void penstock_give_up_number(int fd);

void penstock_nodes_fork(bool begins);
void penstock_nodes_forked(void);

#endif
