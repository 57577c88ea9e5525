// Permission of an I/O node on this host: a thread asks, and then makes its calls itself.
//
// Most calls find a credit that is still good and ask nobody: this takes no lock and no system
// call. A handler may run, fork, or jump away at any point of such a call, and a cancellation end
// it: what it was about to touch then stays memory of a credit, if another thread's.

#ifndef PENSTOCK_PERMITS_H
#define PENSTOCK_PERMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "permit.h"

typedef struct penstock_credit penstock_credit;

// The permission for one call, over as soon as the call is.
typedef struct {
  penstock_credit* credit;  // NULL: nobody was asked, or nobody answered
  uint64_t began;           // when it was measured; 0: it is not
  uint32_t before;          // a call that this one interrupted, in a signal handler
  size_t striped;           // bytes of the first of several credits; 0: there is one
} penstock_grant;

typedef struct {
  int fd;
  uint32_t kind;   // PENSTOCK_CALL_*
  int64_t offset;  // or PENSTOCK_AT_POSITION
  size_t bytes;
} penstock_wish;

// Whether this thread's credit covers the call; false: ask.
bool penstock_has_credit(const penstock_control* page, const penstock_wish* wish,
                         penstock_grant* grant);

// Whether no I/O node had a credit for this thread a moment ago, so that asking again is in vain.
bool penstock_has_none(const penstock_control* page);

enum penstock_permission {
  PENSTOCK_GRANTED,
  PENSTOCK_REFUSED,   // an I/O node should have decided and did not
  PENSTOCK_NO_NODE,   // the job has none
  PENSTOCK_ELSEWHERE  // its I/O nodes are on other hosts
};

// Ask the I/O nodes of this host. From inside penstock_enter.
enum penstock_permission penstock_ask_permission(const penstock_control* page,
                                                 const penstock_wish* wish, penstock_grant* grant);

// The call is over. Returns the bytes that it moved with permission: where one of several I/O nodes
// gave none, not all. Keeps errno.
size_t penstock_end_grant(const penstock_grant* grant, const penstock_wish* wish, ssize_t result);

// The program wants this very number for a descriptor of its own. From inside.
void penstock_permits_give_up_number(int fd);

// Whoever waits for an answer looks whether we are retired. From inside.
void penstock_permits_wake(void);

// Before all others.
void penstock_permits_start(void);

void penstock_permits_fork(bool begins);
void penstock_permits_forked(void);

#endif
