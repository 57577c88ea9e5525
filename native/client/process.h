// This process as part of its job: the shared pages, and when it must keep away from them.

#ifndef PENSTOCK_PROCESS_H
#define PENSTOCK_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "page.h"

// The control page, or NULL where everything passes through.
const penstock_control* penstock_active(void);

extern penstock_counters* penstock_counted;  // NULL until there was a control page

// A child created without the C library's fork has a copy of our memory, and its connections are
// its parent's: it passes everything through.
bool penstock_is_copy(void);

// True in a copy, and in a child of vfork before its exec. Such a child shares our memory but not
// our descriptors, so nothing that it opens or closes may be recorded. Costs a system call, unless
// we are retired: then nobody asks any more.
bool penstock_is_other_process(void);

// Around all that takes a lock of ours or talks to an I/O node. Signals wait until it is over, as
// they do while the kernel reads or writes a file: a handler could jump away with what we hold, and
// cancellation is a signal too. False: this is a handler that a fault in between called, a copy, or
// a child of vfork, whose death would leave its parent's thread inside, or we are retired. Then go
// straight to the kernel.
bool penstock_enter(void);
void penstock_leave(void);

bool penstock_inside(void);

#define PENSTOCK_BIT(signal) (UINT64_C(1) << ((signal) - 1))
// Signals by which the processor reports faults: blocked, they end the process.
#define PENSTOCK_FAULTS                                                                         \
  (PENSTOCK_BIT(SIGSEGV) | PENSTOCK_BIT(SIGBUS) | PENSTOCK_BIT(SIGFPE) | PENSTOCK_BIT(SIGILL) | \
   PENSTOCK_BIT(SIGTRAP) | PENSTOCK_BIT(SIGSYS))

// For a wait that may be long, from inside: a signal that ends or stops the process by its default
// action does so now. True: the program is told to end or to stop in a way that it handles itself
// once the wait is over.
bool penstock_let_die(void);

// From now on this process passes through, and makes no system call of its own: other threads that
// are about to have been waited for, for a while. What I/O nodes of other hosts have is synced.
void penstock_retire(void);

// Around system calls of ours that are neither in penstock_enter nor in penstock_begin. False: we
// are retired. Not within another such pair, of which penstock_is_busy tells.
bool penstock_busy(void);
bool penstock_is_busy(void);  // in such a pair
void penstock_idle(void);
bool penstock_retired(void);

// This process's number among those of the job that went to an I/O node.
uint64_t penstock_ordinal(void);

// Nanoseconds of one of the kernel's clocks.
static inline uint64_t penstock_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}
static inline uint64_t penstock_now(void) { return penstock_clock(CLOCK_MONOTONIC); }
static inline uint64_t penstock_coarse_now(void) { return penstock_clock(CLOCK_MONOTONIC_COARSE); }

#endif
