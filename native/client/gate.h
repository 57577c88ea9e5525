// The gate: which calls wait, and for how long.

#ifndef PENSTOCK_GATE_H
#define PENSTOCK_GATE_H

#include <stddef.h>
#include <sys/types.h>

#include "slots.h"

// A data call of `bytes` bytes on a descriptor begins (waits at the gate of its file system), and
// ends having moved `result`.
void penstock_begin(int fd, size_t bytes);
void penstock_end(int fd, enum penstock_kind kind, ssize_t result);

// A call on two descriptors, of which one may not be managed: it waits at both gates.
void penstock_begin_both(int in, int out, size_t bytes);
void penstock_end_both(int in, int out, ssize_t result);

// Whoever waits looks whether we are retired.
void penstock_gate_wake(const penstock_control* page);

// A child of fork has not moved anything yet.
void penstock_gate_forked(void);

#endif
