// Raw system calls throughout: the C library's are points of cancellation, and others may stand in
// front of them.

#define _GNU_SOURCE
#include "link.h"
#include "compat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "process.h"

#define MOST_PIECES 64  // of a vector that goes over TCP at once

typedef union {
  struct sockaddr any;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
} address;

static socklen_t address_of(const penstock_node* where, address* to) {
  memset(to, 0, sizeof *to);
  char text[PENSTOCK_ADDRESS_BYTES + 1] = {0};
  memcpy(text, where->address, PENSTOCK_ADDRESS_BYTES);
  if (inet_pton(AF_INET, text, &to->four.sin_addr) == 1) {
    to->four.sin_family = AF_INET;
    to->four.sin_port = htons((uint16_t)where->port);
    return sizeof to->four;
  }
  if (inet_pton(AF_INET6, text, &to->six.sin6_addr) == 1) {
    to->six.sin6_family = AF_INET6;
    to->six.sin6_port = htons((uint16_t)where->port);
    return sizeof to->six;
  }
  return 0;
}

// A host that came back after a crash must say so to a request that waits (a reset, upon the
// kernel's question), but one that is cut off must be waited for: silence proves nothing, however
// long it is.
static void watch_host(int fd) {
  const int yes = 1;
  const int seconds = 5;
  const int never = INT_MAX;    // milliseconds, 24 days
  const int soon_again = 2000;  // milliseconds at most between two tries; new kernels know it
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
  setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &soon_again, sizeof soon_again);
}

bool penstock_link_open(penstock_link* link, const penstock_node* where, uint64_t patience) {
  *link = (penstock_link){.fd = -1, .patience = patience};
  address to;
  const socklen_t length = address_of(where, &to);
  if (length == 0) return false;
  const int fd =
      penstock_keep((int)syscall(SYS_socket, to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return false;
  link->fd = fd;
  link->socket = penstock_socket_of(fd);
  const struct timeval most = {(time_t)(patience / UINT64_C(1000000000)),
                               (suseconds_t)(patience % UINT64_C(1000000000) / 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  watch_host(fd);
  if (syscall(SYS_connect, fd, &to, length) == 0) return true;
  penstock_link_close(link);
  return false;
}

void penstock_link_close(penstock_link* link) {
  if (link->fd >= 0) penstock_close_own(link->fd, link->socket);
  link->fd = -1;
}

void penstock_link_move(penstock_link* link) {
  const int before = link->fd;
  link->fd = -1;  // found broken, and done without
  if (penstock_socket_of(before) == link->socket)
    link->fd = penstock_keep((int)syscall(SYS_fcntl, before, F_DUPFD_CLOEXEC, before + 1));
  penstock_disown(before, link->socket);
}

// Sends all of a message, or an incomplete one, on which the I/O node does not act.
static bool send_all(penstock_link* link, struct iovec* pieces, size_t count) {
  if (count == 1) {
    // The usual case, with the least work for the kernel.
    const long sent =
        syscall(SYS_sendto, link->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL, NULL, 0);
    if (sent == (long)pieces->iov_len) return true;
    if (sent > 0)
      pieces[0] = (struct iovec){(char*)pieces->iov_base + sent, pieces->iov_len - (size_t)sent};
  }
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
  while (message.msg_iovlen > 0) {
    const long sent = syscall(SYS_sendmsg, link->fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    size_t rest = (size_t)sent;
    while (message.msg_iovlen > 0 && rest >= message.msg_iov->iov_len) {
      rest -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = (char*)message.msg_iov->iov_base + rest;
      message.msg_iov->iov_len -= rest;
    }
  }
  return true;
}

// Up to `most` pieces for `bytes` of a vector from `skip` on; returns the bytes that they hold.
static size_t cut(const struct iovec* from, size_t skip, size_t bytes, struct iovec* to,
                  size_t most, size_t* count) {
  size_t held = 0;
  *count = 0;
  for (; held < bytes && *count < most; ++from) {
    if (skip >= from->iov_len) {
      skip -= from->iov_len;
      continue;
    }
    size_t here = from->iov_len - skip;
    if (here > bytes - held) here = bytes - held;
    to[(*count)++] = (struct iovec){(char*)from->iov_base + skip, here};
    held += here;
    skip = 0;
  }
  return held;
}

static bool send_pieces(penstock_link* link, const struct iovec* from, size_t skip, size_t bytes) {
  struct iovec pieces[MOST_PIECES];
  size_t count;
  while (bytes > 0) {
    const size_t held = cut(from, skip, bytes, pieces, MOST_PIECES, &count);
    if (!send_all(link, pieces, count)) return false;
    skip += held;
    bytes -= held;
  }
  return true;
}

static void begin_request(penstock_link* link, const penstock_request* request) {
  link->request = *request;
  link->request.magic = PENSTOCK_WIRE_MAGIC;
  link->request.number = ++link->number;
  link->received = 0;
}

static bool send_request(penstock_link* link, const penstock_parcel* parcel) {
  const size_t bytes = link->request.bytes;
  struct iovec head[2] = {{&link->request, sizeof link->request}, {NULL, 0}};
  size_t heads = 1;
  if (parcel != NULL && parcel->text != NULL)
    head[heads++] = (struct iovec){(void*)parcel->text, bytes};
  if (!send_all(link, head, heads)) return false;
  return parcel == NULL || parcel->out == NULL ||
         send_pieces(link, parcel->out, parcel->skip, bytes);
}

// Receives until `had` is `bytes`.
static enum penstock_answer receive(penstock_link* link, struct iovec* pieces, size_t count,
                                    size_t* had, size_t bytes) {
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
  const long got =
      count == 1 ? syscall(SYS_recvfrom, link->fd, pieces->iov_base, pieces->iov_len, 0, NULL, NULL)
                 : syscall(SYS_recvmsg, link->fd, &message, 0);
  if (got < 0 && errno == EINTR) return PENSTOCK_ANSWERED;
  if (got < 0 && errno == EAGAIN) return PENSTOCK_LATE;
  if (got <= 0) return PENSTOCK_HUNG_UP;
  *had += (size_t)got;
  return *had <= bytes ? PENSTOCK_ANSWERED : PENSTOCK_HUNG_UP;
}

static bool is_reply(const penstock_link* link) {
  return link->reply.magic == PENSTOCK_WIRE_MAGIC && link->reply.number == link->request.number;
}

static enum penstock_answer receive_reply(penstock_link* link) {
  while (link->received < sizeof link->reply) {
    struct iovec piece = {(char*)&link->reply + link->received,
                          sizeof link->reply - link->received};
    const enum penstock_answer answer =
        receive(link, &piece, 1, &link->received, sizeof link->reply);
    if (answer != PENSTOCK_ANSWERED) return answer;
  }
  return is_reply(link) ? PENSTOCK_ANSWERED : PENSTOCK_HUNG_UP;
}

static enum penstock_answer receive_pieces(penstock_link* link, const penstock_parcel* parcel,
                                           size_t bytes) {
  struct iovec pieces[MOST_PIECES];
  size_t had = link->received - sizeof link->reply;
  while (had < bytes) {
    size_t count;
    cut(parcel->in, parcel->skip + had, bytes - had, pieces, MOST_PIECES, &count);
    const enum penstock_answer answer = receive(link, pieces, count, &had, bytes);
    link->received = sizeof link->reply + had;
    if (answer != PENSTOCK_ANSWERED) return answer;
  }
  return PENSTOCK_ANSWERED;
}

enum penstock_answer penstock_link_wait(penstock_link* link, const penstock_parcel* parcel,
                                        int64_t* result) {
  enum penstock_answer answer =
      link->received < sizeof link->reply ? receive_reply(link) : PENSTOCK_ANSWERED;
  if (answer != PENSTOCK_ANSWERED) return answer;
  const int64_t moved = link->reply.result;
  const bool moves =
      link->request.operation == PENSTOCK_WRITE || link->request.operation == PENSTOCK_READ;
  if (moved < -4095 || (moves && moved > (int64_t)link->request.bytes)) return PENSTOCK_HUNG_UP;
  // No kernel writes nothing: programs would try for ever.
  if (link->request.operation == PENSTOCK_WRITE && moved == 0) return PENSTOCK_HUNG_UP;
  if (parcel != NULL && parcel->in != NULL && moved > 0)
    answer = receive_pieces(link, parcel, (size_t)moved);
  *result = moved;
  return answer;
}

enum penstock_answer penstock_link_ask(penstock_link* link, const penstock_request* request,
                                       const penstock_parcel* parcel, int64_t* result) {
  begin_request(link, request);
  // What is said here may be files' data: to nobody else.
  if (penstock_socket_of(link->fd) != link->socket || !send_request(link, parcel))
    return PENSTOCK_HUNG_UP;
  return penstock_link_wait(link, parcel, result);
}

enum penstock_answer penstock_link_await_challenge(penstock_link* link) {
  // Bytes that trickle in must not keep us for longer than silence would.
  const uint64_t until = penstock_now() + link->patience;
  const size_t head = sizeof link->reply, all = head + sizeof link->challenge;
  while (link->received < all) {
    const bool in_head = link->received < head;
    char* to = in_head ? (char*)&link->reply + link->received
                       : (char*)&link->challenge + (link->received - head);
    struct iovec piece = {to, (in_head ? head : all) - link->received};
    const enum penstock_answer answer = receive(link, &piece, 1, &link->received, all);
    if (answer != PENSTOCK_ANSWERED) return answer;
    if (link->received < all && penstock_now() > until) return PENSTOCK_LATE;
  }
  return is_reply(link) ? PENSTOCK_ANSWERED : PENSTOCK_HUNG_UP;
}

enum penstock_answer penstock_link_greet(penstock_link* link,
                                         const penstock_introduction* introduction) {
  const penstock_request hello = {.operation = PENSTOCK_HELLO, .bytes = sizeof *introduction};
  begin_request(link, &hello);
  const penstock_parcel parcel = {.text = (const char*)introduction};
  if (penstock_socket_of(link->fd) != link->socket || !send_request(link, &parcel))
    return PENSTOCK_HUNG_UP;
  return penstock_link_await_challenge(link);
}

bool penstock_link_stands(const penstock_link* link) {
  const int fd = link->fd;
  if (fd < 0 || penstock_socket_of(fd) != link->socket) return false;
  struct pollfd here = {fd, POLLRDHUP, 0};
  const struct timespec at_once = {0, 0};
  return syscall(SYS_ppoll, &here, 1, &at_once, NULL, 0) == 0;
}
