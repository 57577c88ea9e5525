// Messages between clients and I/O nodes of other hosts, which carry data; docs/internals/wire.md
// describes them. On one host no data is carried: permit.h. C, so that the client library can use
// it. All numbers are little-endian.
//
// A connection carries one request at a time: the next is sent when the last was answered. Data
// follows the request, or the reply.

#ifndef PENSTOCK_WIRE_H
#define PENSTOCK_WIRE_H

#include <stdint.h>

#include "hmac.h"
#include "page.h"

#define PENSTOCK_WIRE_MAGIC 0x32574e50u  // "PNW2"
#define PENSTOCK_NONCE_BYTES 32u
#define PENSTOCK_LARGEST (4u << 20)  // bytes that one request moves at most
#define PENSTOCK_PATH_BYTES 4096u    // of an OPEN at most

enum penstock_operation {
  // First on every connection. Its `bytes` of a penstock_introduction follow, and a
  // penstock_challenge follows the reply: the I/O node proves first that it has the token.
  PENSTOCK_HELLO = 1,
  // `flags`: access mode, O_DIRECT, O_SYNC, O_DSYNC, O_NOATIME. The result is the file's handle in
  // this session, to be used on any of its connections. `bytes` of a path below managed root
  // number `file` follow, and `offset` is the inode that it must lead to.
  PENSTOCK_OPEN = 2,
  // `flags`: RWF_DSYNC and RWF_SYNC alone. The result is as of pwritev2 and preadv2.
  PENSTOCK_WRITE = 3,
  PENSTOCK_READ = 4,
  PENSTOCK_FSYNC = 5,
  PENSTOCK_FDATASYNC = 6,
  // The result is that of close(2); the handle is gone in any case.
  PENSTOCK_CLOSE = 7,
  // Second on every connection: the client's proof that it has the token, PENSTOCK_DIGEST_BYTES,
  // follows.
  PENSTOCK_PROVE = 8,
};

typedef struct {
  uint32_t magic;
  uint32_t operation;
  uint32_t number;  // the client's count on this connection; the reply repeats it
  uint32_t file;
  uint64_t offset;
  uint32_t bytes;
  uint32_t flags;
} penstock_request;

typedef struct {
  uint64_t session[2];  // random: the connections of one process have the same, and share its files
  uint32_t pid;
  uint32_t reserved;
  char job[PENSTOCK_JOB_BYTES];
  uint8_t nonce[PENSTOCK_NONCE_BYTES];
} penstock_introduction;

typedef struct {
  uint32_t magic;
  uint32_t number;
  int64_t result;  // what the call returns, or the error number, negated
  uint64_t boot;   // of HELLO: of the host's kernel; acknowledged data is in it, and lost with it
  uint64_t node;   // of HELLO: the I/O node's id, as in the map
} penstock_reply;

typedef struct {
  uint8_t nonce[PENSTOCK_NONCE_BYTES];
  uint8_t proof[PENSTOCK_DIGEST_BYTES];
} penstock_challenge;

// What both sides of a connection prove to have seen, with the token that they share: all that was
// said so far. The role tells their proofs apart, so that neither can be given back to its author.
typedef struct {
  char role[8];
  penstock_request hello;
  penstock_introduction introduction;
  penstock_reply reply;
  uint8_t nonce[PENSTOCK_NONCE_BYTES];  // of the I/O node
} penstock_transcript;

#define PENSTOCK_ROLE_NODE "node"
#define PENSTOCK_ROLE_CLIENT "client"

static inline void penstock_prove(const penstock_transcript* transcript, const char* role,
                                  const uint8_t token[PENSTOCK_TOKEN_BYTES],
                                  uint8_t proof[PENSTOCK_DIGEST_BYTES]) {
  penstock_transcript proven = *transcript;
  memset(proven.role, 0, sizeof proven.role);
  memcpy(proven.role, role, strlen(role));
  penstock_hmac(token, PENSTOCK_TOKEN_BYTES, &proven, sizeof proven, proof);
}

#endif
