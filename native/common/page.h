// The pages that a job's processes share with their node's agent; docs/shared-page.md has the layout
// for people, src/penstock/live/page.py for Python. C, so that the client library can use it.
//
// Control is written by the agent alone and read-only to the job; counters are written by the job
// and not trusted by anybody. All numbers are little-endian and naturally aligned.

#ifndef PENSTOCK_PAGE_H
#define PENSTOCK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define PENSTOCK_PAGE_VERSION 1u
#define PENSTOCK_CONTROL_MAGIC UINT64_C(0x4c52544354534e50)   // "PNSTCTRL"
#define PENSTOCK_COUNTERS_MAGIC UINT64_C(0x52544e4354534e50)  // "PNSTCNTR"
#define PENSTOCK_ROOTS 8
#define PENSTOCK_ROOT_BYTES 1016
#define PENSTOCK_SLOTS 1024

typedef struct {
  uint32_t length;
  uint32_t reserved;
  char path[PENSTOCK_ROOT_BYTES];  // absolute, without a slash at its end
} penstock_root;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;  // of the whole page
  // CLOCK_MONOTONIC nanoseconds; a closed gate opens by itself when this time has come.
  _Atomic uint64_t closed_until;
  _Atomic uint32_t gate_changes;  // waiters sleep on it (futex)
  _Atomic uint32_t active;        // 0: the client library passes everything through
  uint64_t longest_wait;          // nanoseconds that one call waits at most
  uint64_t never_waits;           // bytes up to which a call never waits
  uint32_t roots;
  uint32_t reserved;
  penstock_root root[PENSTOCK_ROOTS];
} penstock_control;

// What a thread of the job did under the managed roots. Only its thread writes to it, so that
// counting takes no locked instruction; the last slot is shared by all threads that found no other.
typedef struct {
  _Atomic uint64_t pid;
  _Atomic uint64_t opens;
  _Atomic uint64_t reads;
  _Atomic uint64_t read_bytes;
  _Atomic uint64_t writes;
  _Atomic uint64_t write_bytes;
  _Atomic uint64_t syncs;
  _Atomic uint64_t left_to_kernel;  // copy_file_range, sendfile: seen, and not looked into
  _Atomic uint64_t waits;
  _Atomic uint64_t waited;      // nanoseconds at the gate
  _Atomic uint64_t gave_up;     // waits that ended at longest_wait
  _Atomic uint64_t last_call;   // CLOCK_MONOTONIC_COARSE nanoseconds at the end of the last data call
  _Atomic uint64_t in_flight;   // 1 during a data call
  uint64_t reserved[3];
} penstock_slot;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t slots;
  _Atomic uint64_t taken;  // so many slots have been given to a thread
  uint64_t reserved[13];
  penstock_slot slot[PENSTOCK_SLOTS];
} penstock_counters;

// What a new process says to the agent, and the agent's answer, which carries two descriptors: the
// control page and the counters page.
typedef struct {
  uint64_t magic;  // PENSTOCK_CONTROL_MAGIC
  uint32_t version;
  uint32_t pid;
} penstock_hello;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t ordinal;  // this process is the job's so-manieth, from 0 on
} penstock_welcome;

#endif
