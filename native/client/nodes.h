// The job's I/O nodes: the map; and of those on other hosts, a session with each and connections
// that carry one request a time.

#ifndef PENSTOCK_NODES_H
#define PENSTOCK_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "files.h"
#include "link.h"

typedef struct penstock_connection {
  penstock_link link;
  int place;            // of its I/O node among those that this process went to, and among handles
  uint32_t generation;  // of the session that it is of
  uint64_t boot;        // of the I/O node's host
  bool proven;          // the I/O node has shown on it that it has the job's token
  bool late;            // has an answer to come that nobody waits for: not to be used any more
  uint32_t number;      // of the I/O node at the site, plus one; 0: unknown
  struct penstock_connection* next;    // while it is idle
  struct penstock_connection* always;  // of all that ever were
  // The range of a file that it is busy with: other calls on this range wait.
  _Atomic bool overdue;
  uint64_t device, inode, offset, end;
} penstock_connection;

// Writes of this process whose I/O node does not answer.
extern _Atomic uint32_t penstock_overdue;

// Are there any I/O nodes to go to, or to wait for? Costs two loads.
static inline bool penstock_concerned(const penstock_control* page) {
  return page->map.nodes != 0 || atomic_load_explicit(&penstock_overdue, memory_order_relaxed) != 0;
}

// Nanoseconds before an I/O node that had gone is tried again, at first and at most: one that
// stalls costs the call that tries it the whole patience.
#define PENSTOCK_RETRY UINT64_C(1000000000)
#define PENSTOCK_RETRY_SELDOM (30 * PENSTOCK_RETRY)

// Where the calls of this process go. With a stripe, to several I/O nodes in turn.
typedef struct {
  uint32_t version;  // of the map
  uint32_t nodes;
  uint64_t stripe;
  bool local;           // to I/O nodes of this host alone, which are asked for permission
  penstock_node where;  // without a stripe
} penstock_route;

// False: the job has no I/O nodes. From inside penstock_enter.
bool penstock_find_route(const penstock_control* page, penstock_route* route);

// An I/O node of that map; false: there is another map now.
bool penstock_node_at(uint32_t version, uint32_t place, penstock_node* where);

// Returns an idle connection to the I/O node for this offset, ours until given back; NULL if none
// is available now (then `wanted` says whether one should have been). `bytes` is reduced to what
// goes to that I/O node. Waits for an earlier unanswered write to the same range.
penstock_connection* penstock_connect(const penstock_control* page, const penstock_file* file,
                                      uint64_t offset, size_t* bytes, bool* wanted);
void penstock_disconnect(penstock_connection* connection);

// No answer will come: the I/O node has gone, or was given up where nothing can happen later.
#define PENSTOCK_GONE INT64_MIN

// The answer to one request. `wait`: beyond the I/O node's patience too, until it answers or is
// gone, and but for a write until the program is told to end (-EINTR). Other requests change
// nothing, and their answer is discarded.
int64_t penstock_ask(penstock_connection* connection, penstock_request request,
                     const penstock_parcel* parcel, bool wait);

// A connection of this very session with the I/O node at that place; NULL: the session has ended.
penstock_connection* penstock_reconnect(int place, uint32_t generation);

// A connection with the I/O node at that place, in this session or a new one: for what nobody else
// can answer. Waits while it does not answer, if it has proven itself on a connection that still
// stands: whoever listens at its port otherwise may be anybody. NULL: it is gone, cannot be
// reached, or (`interrupted`) the program is told to end.
penstock_connection* penstock_return_to(const penstock_control* page, int place, bool* interrupted);

// The place of this process's I/O node; -1: none, or one of this host.
int penstock_place_of_map(const penstock_control* page);

// The program wants this very number for a descriptor of its own.
void penstock_give_up_number(int fd);

void penstock_nodes_fork(bool begins);
void penstock_nodes_forked(void);

#endif
