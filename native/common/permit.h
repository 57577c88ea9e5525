// What an I/O node and the clients of its own host say to each other; docs/internals/permits.md
// describes it. No data passes: the I/O node answers with a credit, and the client makes its calls
// itself, on its own descriptors, until the credit is used up, too old or recalled. C, so that the
// client library can use it.
//
// A process has one connection to an I/O node, a Unix socket of whole messages, and a page of
// shared memory, which the I/O node makes and hands out with its answer to the greeting. Each
// thread has a permit in that page. It asks by a message; the answer is in its permit. Whatever the
// client writes into the page is its claim, and is not trusted.

#ifndef PENSTOCK_PERMIT_H
#define PENSTOCK_PERMIT_H

#include <stdint.h>

#include "page.h"

#define PENSTOCK_PERMIT_MAGIC 0x31504e50u  // "PNP1"
#define PENSTOCK_PERMITS 64u               // of a connection
#define PENSTOCK_CALLS_KEPT 1024u          // of a permit that its page remembers: a power of two

enum penstock_message {
  PENSTOCK_ASK = 1,       // for a credit; the one before it is given back
  PENSTOCK_GIVE_BACK = 2  // a credit that was recalled, or is used up while others wait
};

enum penstock_call_kind { PENSTOCK_CALL_READ = 0, PENSTOCK_CALL_WRITE = 1, PENSTOCK_CALL_SYNC = 2 };

// The first message of a connection, and its answer, which brings the page's descriptor.
typedef struct {
  uint32_t magic;
  uint32_t pid;
  char job[PENSTOCK_JOB_BYTES];
} penstock_permit_hello;

typedef struct {
  uint32_t magic;
  uint32_t reserved;
  uint64_t node;  // the I/O node's id, as in the map
} penstock_permit_welcome;

typedef struct {
  uint32_t message;
  uint32_t permit;  // its index in the page
  uint32_t number;  // of the thread's question; the answer repeats it
  uint32_t kind;    // of the call, as are the other fields
  uint64_t file;
  uint64_t offset;
  uint64_t bytes;
} penstock_permit_message;

// A call that was made. The time is in nanoseconds of CLOCK_MONOTONIC_COARSE.
typedef struct {
  uint64_t file;
  uint64_t offset;
  uint64_t ended;
  uint32_t bytes;  // that it moved
  uint32_t how;    // PENSTOCK_CALL_DURATION times its duration, plus its kind
} penstock_called;

#define PENSTOCK_CALL_DURATION 4u  // a duration counts units of 64 ns

enum penstock_permit_terms {
  PENSTOCK_METERED = 1,   // others wait: give it back as soon as it is used up
  PENSTOCK_UNMANAGED = 2  // too many calls of this user hang: make the call, it counts as direct
};

typedef struct {
  // The I/O node writes.
  uint32_t answered;  // the number of the question that the next fields answer; a futex
  uint32_t terms;
  uint64_t bytes;
  uint64_t until;      // nanoseconds of CLOCK_MONOTONIC
  uint32_t calls;      // 0: an empty credit
  uint32_t recalled;   // the number whose credit must not be used; a waiting thread may set it, too
  uint32_t heartbeat;  // grows while the question waits
  uint32_t reserved[7];
  // The client writes.
  uint32_t sleeps;   // 1: it waits for the futex
  uint32_t in_call;  // the number under which a call is under way; 0: none
  uint64_t calls_made;
  uint32_t more[12];
  penstock_called call[PENSTOCK_CALLS_KEPT];  // the last ones
} penstock_permit;

typedef struct {
  penstock_permit permit[PENSTOCK_PERMITS];
} penstock_permit_page;

#endif
