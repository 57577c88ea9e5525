// The pages that a job's processes share with their node's agent; docs/internals/shared-page.md has
// the layout for people, src/penstock/live/protocol/shared_page.py for Python. C, so that the
// client library can use it.
//
// Control is written by the agent alone and read-only to the job; counters are written by the job
// and are not trusted. All numbers are little-endian and naturally aligned.

#ifndef PENSTOCK_PAGE_H
#define PENSTOCK_PAGE_H

#include <stdint.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif

#define PENSTOCK_PAGE_VERSION 4u
#define PENSTOCK_CONTROL_MAGIC UINT64_C(0x4c52544354534e50)   // "PNSTCTRL"
#define PENSTOCK_COUNTERS_MAGIC UINT64_C(0x52544e4354534e50)  // "PNSTCNTR"
#define PENSTOCK_ROOTS 8
#define PENSTOCK_FILE_SYSTEMS 8
#define PENSTOCK_ROOT_BYTES 1016
#define PENSTOCK_SLOTS 1024
#define PENSTOCK_SITE_NODES 1024  // I/O nodes of a site
#define PENSTOCK_SLOT_NODES 4     // those that a thread has counters of its own for
#define PENSTOCK_MAP_NODES 64     // those that the processes of a job use on one host
#define PENSTOCK_JOB_BYTES 64
#define PENSTOCK_TOKEN_BYTES 32
#define PENSTOCK_ADDRESS_BYTES 108
#define PENSTOCK_DIRECTORIES 4
#define PENSTOCK_DIRECTORY_BYTES 248

// C++ before 2023 has no _Atomic; the I/O node needs the sizes alone.
#ifndef __cplusplus

typedef struct {
  uint32_t length;
  uint32_t file_system;            // below PENSTOCK_FILE_SYSTEMS; an older agent knows only 0
  char path[PENSTOCK_ROOT_BYTES];  // absolute, without a slash at its end
} penstock_root;

// The gate of a file system.
typedef struct {
  // CLOCK_MONOTONIC nanoseconds; a closed gate opens by itself when this time has come.
  _Atomic uint64_t closed_until;
  _Atomic uint32_t changes;  // waiters sleep on it (futex)
  _Atomic uint32_t active;   // of the first gate; 0: the client library passes everything through
} penstock_gate;

enum penstock_transport { PENSTOCK_UNIX = 0, PENSTOCK_TCP = 1 };

// One of the job's I/O nodes. The address is a socket's path, or a numeric IP address.
typedef struct {
  uint64_t id;  // of this run of the I/O node: another one at the same address has another
  uint32_t transport;
  uint32_t port;
  char address[PENSTOCK_ADDRESS_BYTES];
  uint32_t number;  // its number at the site, plus one; 0: an older agent did not say
} penstock_node;

// Which I/O nodes the job has now: none is direct access. `version` is odd while the agent writes;
// a reader that saw it odd, or changed, reads again.
typedef struct {
  _Atomic uint32_t version;
  uint32_t nodes;
  uint64_t stripe;  // 0: a process goes to one of them; else bytes after which the next one follows
  penstock_node node[PENSTOCK_MAP_NODES];
} penstock_map;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;         // of the whole page
  penstock_gate gate;     // of the first file system
  uint64_t longest_wait;  // nanoseconds that one call waits at most
  uint64_t never_waits;   // bytes per second that a thread moves at a closed gate without waiting
  uint64_t patience;      // nanoseconds after which an I/O node that does not answer is avoided
  char job[PENSTOCK_JOB_BYTES];         // its name at the I/O nodes, ended by a zero
  uint8_t token[PENSTOCK_TOKEN_BYTES];  // shared secret for I/O nodes on other hosts
  uint32_t roots;
  _Atomic uint32_t
      dirty_window;  // bytes of a file that direct writes are ahead of the storage; 0: any
  penstock_root root[PENSTOCK_ROOTS];
  penstock_map map;
  // A page of an older agent ends here: it has one file system.
  penstock_gate other_gates[PENSTOCK_FILE_SYSTEMS - 1];
} penstock_control;

// What threads of the job did under the managed roots. One thread at a time writes to a slot, so
// that counting takes no locked instruction; a slot whose thread is gone is the next one's, which
// counts on from there. The last slot is shared by all threads that did not get their own.
typedef struct {
  _Atomic uint64_t pid;
  _Atomic uint64_t opens;
  _Atomic uint64_t reads;
  _Atomic uint64_t read_bytes;
  _Atomic uint64_t writes;
  _Atomic uint64_t write_bytes;
  _Atomic uint64_t syncs;
  _Atomic uint64_t left_to_kernel;  // copy_file_range, sendfile: counted, and not forwarded
  _Atomic uint64_t waits;
  _Atomic uint64_t waited;   // nanoseconds at the gate
  _Atomic uint64_t gave_up;  // waits that ended at longest_wait
  _Atomic uint64_t
      last_call;  // CLOCK_MONOTONIC_COARSE nanoseconds at the end of the last data call
  _Atomic uint64_t in_flight;  // during a data call, the file system of its file plus one; else 0
  // Of the reads and writes above, those that an I/O node permitted or did.
  _Atomic uint64_t forwarded_reads;
  _Atomic uint64_t forwarded_read_bytes;
  _Atomic uint64_t forwarded_writes;
  _Atomic uint64_t forwarded_write_bytes;
  _Atomic uint64_t left_bytes;  // of the calls left to the kernel
  _Atomic uint64_t
      failed_open;  // calls that an I/O node should have done and did not: done directly
  _Atomic uint64_t
      waiting;  // CLOCK_MONOTONIC nanoseconds since when it waits at the gate; 0: it does not
  _Atomic uint64_t interrupted;  // waits that a stop signal ended
  _Atomic uint64_t locked;       // calls that did not wait because their process holds a file lock
  // The thread whose slot it is: the inode of its namespace of process ids, and below that, in the
  // low half, its thread id there. 0: it is unknown whether that thread lives.
  _Atomic uint64_t owner;
  _Atomic uint64_t opens_elsewhere;  // regular files outside the roots, opened for writing
  _Atomic uint64_t carried_bytes;    // of the forwarded ones, those that went to another host
  _Atomic uint64_t questions;        // for permission: a credit answers for many calls
} penstock_slot;

// Bytes that a thread moved by an I/O node.
typedef struct {
  _Atomic uint64_t node;  // its number, plus one; 0: none yet
  _Atomic uint64_t bytes;
} penstock_node_bytes;

// A directory outside the roots in which the job opened a file for writing.
typedef struct {
  _Atomic uint32_t state;  // 0: free, 1: being written, 2: complete
  uint32_t length;
  char path[PENSTOCK_DIRECTORY_BYTES];
} penstock_directory;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t slots;
  _Atomic uint64_t taken;    // threads that have been given a slot
  _Atomic uint64_t clients;  // processes that have used an I/O node: the next one's ordinal
  // The agent sleeps on it (futex); it grows when a thread waits at the gate or marks a phase.
  _Atomic uint32_t wakeups;
  uint32_t reserved_half;
  _Atomic uint64_t phases_begun, phases_ended;  // marked by the job's own processes
  uint64_t reserved[16];
  _Atomic uint64_t announced;  // bytes announced for such phases before they began
  penstock_slot slot[PENSTOCK_SLOTS];
  // A page of an older agent ends here.
  _Atomic uint64_t node_bytes[PENSTOCK_SITE_NODES];    // by each I/O node, beside those of slots
  penstock_directory elsewhere[PENSTOCK_DIRECTORIES];  // the first ones
  // A page of an agent without file systems ends here.
  _Atomic uint64_t moved[PENSTOCK_SLOTS][PENSTOCK_FILE_SYSTEMS];  // bytes, by slot
  penstock_node_bytes by_node[PENSTOCK_SLOTS][PENSTOCK_SLOT_NODES];
} penstock_counters;

// The message of a new process to the agent, and the agent's answer, which carries two descriptors:
// the control page and the counters page.
typedef struct {
  uint64_t magic;  // PENSTOCK_CONTROL_MAGIC
  uint32_t version;
  uint32_t pid;
} penstock_hello;

typedef struct {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
} penstock_welcome;

#endif

#endif
