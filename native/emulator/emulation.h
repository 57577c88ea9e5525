// The file that all processes on an emulated parallel file system share; docs/live/emulator.md has
// the layout for people, src/penstock/live/deployment/emulator.py for Python. Little-endian,
// naturally aligned.
//
// Only one word per target and per link changes, by compare-and-swap. There is no lock, so a
// process killed at any moment leaves nothing locked.

#ifndef PENSTOCK_EMULATION_H
#define PENSTOCK_EMULATION_H

#include <stdatomic.h>
#include <stdint.h>

#define PENSTOCK_EMULATION_VERSION 2u
#define PENSTOCK_EMULATION_MAGIC UINT64_C(0x4c554d4554534e50)  // "PNSTEMUL"
#define PENSTOCK_EMULATION_ROOT_BYTES 1024
#define PENSTOCK_TARGETS 256
#define PENSTOCK_LARGEST_STRIPE (UINT64_C(1) << 40)
#define PENSTOCK_IO_NODE_LINKS 256
#define PENSTOCK_CLIENT_LINKS 4096

// Busy until, in units of 64 ns since `began`, in the upper 48 bits (208 days); in the lower 16
// what continues the last request: a hash of file, process and offset. Links leave those zero.
typedef _Atomic uint64_t penstock_busy;

typedef struct {
  penstock_busy busy;
  _Atomic uint64_t requests;
  _Atomic uint64_t bytes;
  _Atomic uint64_t switches;
  uint64_t reserved[4];
} penstock_target;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t size;   // bytes of the whole file
  uint64_t began;  // CLOCK_MONOTONIC nanoseconds when it was made
  uint32_t targets;
  uint32_t count;  // targets of one file
  uint64_t stripe;
  uint64_t rate;          // of a target, bytes per second
  uint64_t latency;       // nanoseconds a request keeps a target busy, whatever its size
  uint64_t switch_cost;   // nanoseconds more where it does not continue the target's last request
  uint64_t sync_cost;     // nanoseconds an fsync keeps each target of the file busy
  uint64_t io_node_link;  // bytes per second; 0: no limit
  uint64_t client_link;
  uint32_t root_length;
  uint32_t reserved;
  char root[PENSTOCK_EMULATION_ROOT_BYTES];  // absolute, resolved, without a slash at its end
  uint64_t read_switch_cost;                 // of a read, as switch_cost of a write
  uint64_t padding[3];
  penstock_target target[PENSTOCK_TARGETS];
  penstock_busy io_node[PENSTOCK_IO_NODE_LINKS];
  penstock_busy client[PENSTOCK_CLIENT_LINKS];
} penstock_emulation;

_Static_assert(sizeof(penstock_emulation) == 52352, "the documented layout");

#endif
