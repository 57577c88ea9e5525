// This process as part of its job: the shared pages, the gate, and what it counts.

#ifndef PENSTOCK_PROCESS_H
#define PENSTOCK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "page.h"

// The control page, or NULL where everything passes through.
const penstock_control* penstock_active(void);

// A child made past the C library has a copy of our memory, and nobody told it that the connections
// in there are its parent's: it only passes through.
bool penstock_is_copy(void);

// So is a child of vfork until it execs, which shares our memory but not our descriptors: nothing
// that it opens or closes may be written down. Costs a system call.
bool penstock_is_stranger(void);

// Around all that takes a lock of ours or talks to an I/O node. Signals wait until it is over, as
// they do while the kernel reads or writes a file: a handler could jump away with what we hold, and
// cancellation is a signal too. False: this is a handler that a fault in between called, or a copy.
// Then go straight to the kernel.
bool penstock_enter(void);
void penstock_leave(void);

bool penstock_inside(void);

// For a wait that may be long: a signal that would end the process may do so.
void penstock_let_die(void);

// The process took a lock: from now on it never waits at the gate, or others would wait for it.
void penstock_locked(void);

// A data call of `bytes` bytes begins (waits at the gate), and ends having moved `result`.
void penstock_begin(size_t bytes);
enum penstock_kind { PENSTOCK_READS, PENSTOCK_WRITES, PENSTOCK_SYNCS, PENSTOCK_LEFT };
void penstock_end(enum penstock_kind kind, ssize_t result);

void penstock_count_open(void);
void penstock_count_forwarded(enum penstock_kind kind, size_t bytes);
void penstock_count_failed_open(void);

// From now on this process passes through, and makes no system call of its own.
void penstock_retire(void);
bool penstock_retired(void);

// This process's number among those of the job that went to an I/O node.
uint64_t penstock_ordinal(void);

uint64_t penstock_now(void);  // CLOCK_MONOTONIC nanoseconds

#endif
