// The gate: which calls wait, and for how long.

#ifndef PENSTOCK_GATE_H
#define PENSTOCK_GATE_H

#include <stddef.h>
#include <sys/types.h>

#include "slots.h"

// A data call of `bytes` bytes begins (waits at the gate), and ends having moved `result`.
void penstock_begin(size_t bytes);
void penstock_end(enum penstock_kind kind, ssize_t result);

// A child of fork has not moved anything yet.
void penstock_gate_forked(void);

#endif
