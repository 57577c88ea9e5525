// One connection to an I/O node of another host: how a request and its data get there, and the
// answer back.

#ifndef PENSTOCK_LINK_H
#define PENSTOCK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire.h"

typedef struct {
  int fd;           // -1: closed
  uint64_t socket;  // by which its number is known to be still ours
  uint64_t patience;
  uint32_t number;  // of requests so far
  // State of the answer that is being received.
  penstock_request request;
  size_t received;
  penstock_reply reply;
  penstock_challenge challenge;  // behind the reply to a greeting
} penstock_link;

// The data that goes with a request or comes with its reply: `request.bytes` of the pieces from
// `skip` on.
typedef struct {
  const char* text;
  const struct iovec* out;
  const struct iovec* in;
  size_t skip;
} penstock_parcel;

enum penstock_answer {
  PENSTOCK_ANSWERED,
  PENSTOCK_LATE,    // not within the patience; ask on with penstock_link_wait
  PENSTOCK_HUNG_UP  // nothing of the request will happen from now on
};

bool penstock_link_open(penstock_link* link, const penstock_node* where, uint64_t patience);
// The answer is in `reply` and `challenge`, and says nothing before its proof was checked.
enum penstock_answer penstock_link_greet(penstock_link* link,
                                         const penstock_introduction* introduction);
enum penstock_answer penstock_link_await_challenge(penstock_link* link);
// Whether the other end still has this connection, as far as this host's kernel knows.
bool penstock_link_stands(const penstock_link* link);
enum penstock_answer penstock_link_ask(penstock_link* link, const penstock_request* request,
                                       const penstock_parcel* parcel, int64_t* result);
enum penstock_answer penstock_link_wait(penstock_link* link, const penstock_parcel* parcel,
                                        int64_t* result);
void penstock_link_close(penstock_link* link);
void penstock_link_move(penstock_link* link);  // to another descriptor

#endif
