// For programs that know where their I/O phases are. Optional: phases are also detected without it.
//
// The functions are the client library's, which `penstock run` preloads; in a program that runs
// without it the symbols are absent, and these wrappers do nothing. Link against nothing.
//
//   penstock_phase_begins();  // waits for the job's turn where turns are enforced
//   penstock_phase_begins_with(bytes);  // the same, and announces the bytes to transfer
//   ... write ...
//   penstock_phase_ends();    // at once, not after an idle gap

#ifndef PENSTOCK_H
#define PENSTOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern void penstock_phase_announce(uint64_t bytes) __attribute__((weak));
extern void penstock_phase_begin(void) __attribute__((weak));
extern void penstock_phase_end(void) __attribute__((weak));

static inline void penstock_phase_begins(void) {
  if (penstock_phase_begin) penstock_phase_begin();
}
static inline void penstock_phase_begins_with(uint64_t bytes) {
  if (penstock_phase_announce) penstock_phase_announce(bytes);
  penstock_phase_begins();
}
static inline void penstock_phase_ends(void) {
  if (penstock_phase_end) penstock_phase_end();
}

#ifdef __cplusplus
}
#endif

#endif
