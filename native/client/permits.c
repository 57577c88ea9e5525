// Raw system calls, as in link.c. Every function that takes the lock runs from inside
// penstock_enter.

#define _GNU_SOURCE
#include "permits.h"
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "forward.h"
#include "nodes.h"
#include "process.h"
#include "real.h"
#include "slots.h"

#define MOST_CONNECTIONS 64u  // of this process to one I/O node, of PENSTOCK_PERMITS threads each
#define UNUSED UINT64_C(300000)       // nanoseconds without a call, while others wait
#define SELDOM UINT64_C(100000000)    // nanoseconds between two looks for what is not to be had
#define YIELDS 16                     // times that an answer is looked for awake
#define FIRST_LOOK UINT64_C(5000000)  // nanoseconds until the socket is looked at for a hang-up
#define SELDOM_LOOK UINT64_C(100000000)
#define MEASURED_BYTES (64u << 10)  // calls as large as this are all measured
#define MEASURED_ONE_IN 16u         // of the others

typedef struct connection connection;

// What one thread may do without asking, at one I/O node. Written by its thread alone; but a call
// that a handler interrupted may come back to it when it is another thread's already, and then
// spoils no more than what is counted.
struct penstock_credit {
  penstock_permit* shared;  // these three never change
  connection* of;
  uint32_t index;        // among the permits of the connection
  uint32_t number;       // of the last question; goes on where another thread takes over
  uint32_t terms;        // PENSTOCK_METERED
  uint32_t map_version;  // for which it is the one to use; odd: look
  uint32_t calls;
  uint32_t duration;  // of the last call that was measured, as in penstock_called
  uint64_t bytes;
  uint64_t until;
  size_t part;              // bytes of a call on several I/O nodes
  penstock_credit* beside;  // another one of that call
  penstock_credit* next;    // of the same thread
  _Atomic uint32_t owner;   // the thread's id; 0: none
  // By threads that wait, with the lock: calls that were made, and when this was first seen.
  uint64_t seen;
  uint64_t seen_at;
};

// A connection's memory is used for connections alone, and where its page was there is always
// memory: a thread finds out by itself, and late, that its connection is gone.
struct connection {
  penstock_node where;
  _Atomic int fd;   // -1: gone
  uint64_t socket;  // inode, by which its number is known to be still ours
  penstock_permit_page* page;
  connection* next;
  penstock_credit credit[PENSTOCK_PERMITS];
};

// An I/O node that did not answer.
typedef struct {
  uint64_t id;
  uint64_t retry_at, pause;  // nanoseconds
} absence;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of all below
static connection* connections;                           // all that ever were
static absence absences[PENSTOCK_MAP_NODES];

static __thread penstock_credit* mine;  // the last one used first

// No credit was to be had for this thread, by this map.
static __thread uint64_t none_until;
static __thread uint32_t none_by;

// A thread's end, of which the C library tells by a key. Found at run time, as older ones have it
// in a library of its own; without it, the next thread that looks for a credit finds out.
static pthread_key_t at_end;
static int (*set_at_end)(pthread_key_t, const void*);

static bool same(const penstock_node* a, const penstock_node* b) {
  return a->id == b->id && strncmp(a->address, b->address, sizeof a->address) == 0;
}

// ---- An I/O node that does not answer is left alone for a while.

static absence* absence_of(uint64_t id, bool make) {
  absence* free = &absences[0];
  for (size_t k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    if (absences[k].id == id) return &absences[k];
    if (absences[k].retry_at < free->retry_at) free = &absences[k];
  }
  if (!make) return NULL;
  *free = (absence){.id = id, .pause = PENSTOCK_RETRY};
  return free;
}

static bool is_absent(uint64_t id) {
  absence* known = absence_of(id, false);
  return known != NULL && penstock_now() < known->retry_at;
}

static void set_absent(uint64_t id) {
  absence* known = absence_of(id, true);
  known->retry_at = penstock_now() + known->pause;
  if (known->pause < PENSTOCK_RETRY_SELDOM) known->pause *= 2;
}

static void set_present(uint64_t id) {
  absence* known = absence_of(id, false);
  if (known != NULL) *known = (absence){0};
}

// ---- Connections, with the lock.

// Memory of our own at these addresses, or anywhere, instead of what an I/O node shares.
static void* own_page(void* at) {
  return mmap(at, sizeof(penstock_permit_page), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != NULL ? MAP_FIXED : 0), -1, 0);
}

static void hang_up(connection* with) {
  const int fd = atomic_exchange(&with->fd, -1);
  if (fd < 0) return;
  penstock_close_own(fd, with->socket);
  own_page(with->page);
}

static uint32_t owner_of(const penstock_credit* credit) {
  return atomic_load_explicit(&credit->owner, memory_order_relaxed);
}

// Free the credits of threads that ended without giving them back. A system call for each: seldom.
static void free_abandoned(void) {
  static uint64_t again_at;
  const uint64_t now = penstock_now();
  if (now < again_at) return;
  const long process = syscall(SYS_getpid);
  for (connection* c = connections; c != NULL; c = c->next) {
    for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k) {
      const uint32_t owner = owner_of(&c->credit[k]);
      if (owner != 0 && syscall(SYS_tgkill, process, owner, 0) != 0 && errno == ESRCH)
        atomic_store_explicit(&c->credit[k].owner, 0, memory_order_relaxed);
    }
  }
  again_at = now + SELDOM;
}

static connection* new_connection(void) {
  for (connection* gone = connections; gone != NULL; gone = gone->next) {
    uint32_t k = 0;
    while (gone->fd < 0 && k < PENSTOCK_PERMITS && owner_of(&gone->credit[k]) == 0) ++k;
    if (k == PENSTOCK_PERMITS) return gone;
  }
  connection* fresh =
      mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* page = own_page(NULL);
  if (fresh == MAP_FAILED || page == MAP_FAILED) return NULL;
  fresh->page = page;
  fresh->fd = -1;
  for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k)
    fresh->credit[k] =
        (penstock_credit){.shared = &fresh->page->permit[k], .of = fresh, .index = k};
  fresh->next = connections;
  __atomic_store_n(&connections, fresh, __ATOMIC_RELEASE);
  return fresh;
}

static int dial(const penstock_node* where, uint64_t patience) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  memcpy(to.sun_path, where->address, sizeof to.sun_path - 1);
  const int fd = penstock_keep((int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0) return -1;
  const struct timeval most = {(time_t)(patience / UINT64_C(1000000000)),
                               (suseconds_t)(patience % UINT64_C(1000000000) / 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (syscall(SYS_connect, fd, &to, sizeof to) == 0) return fd;
  penstock_close_own(fd, penstock_socket_of(fd));
  return -1;
}

// Whether an I/O node can take nothing of this memory away while we use it: that would end us. One
// with huge pages could be taken, and come back only as long as the host has any.
static bool stays(int memory) {
  struct stat status;
  struct statfs of;
  const long seals = syscall(SYS_fcntl, memory, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && penstock_status(memory, &status) &&
         (size_t)status.st_size >= sizeof(penstock_permit_page) &&
         syscall(SYS_fstatfs, memory, &of) == 0 && of.f_type == TMPFS_MAGIC;
}

// The answer to the greeting brings the page.
static bool greet(int fd, const char* job, uint64_t node, penstock_permit_page* at) {
  penstock_permit_hello hello = {PENSTOCK_PERMIT_MAGIC, (uint32_t)syscall(SYS_getpid), {0}};
  memcpy(hello.job, job, sizeof hello.job);
  if (syscall(SYS_sendto, fd, &hello, sizeof hello, MSG_NOSIGNAL, NULL, 0) != sizeof hello)
    return false;
  penstock_permit_welcome welcome = {0};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } ancillary = {{0}};
  struct iovec piece = {&welcome, sizeof welcome};
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = ancillary.bytes,
                           .msg_controllen = CMSG_LEN(sizeof(int))};  // not padded: for one
  const long got = syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
  const struct cmsghdr* given = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (given == NULL || given->cmsg_type != SCM_RIGHTS) return false;
  int memory;
  memcpy(&memory, CMSG_DATA(given), sizeof memory);
  void* page = MAP_FAILED;
  if (got == sizeof welcome && welcome.magic == PENSTOCK_PERMIT_MAGIC &&
      (node == 0 || welcome.node == node) && stays(memory))
    page = mmap(at, sizeof(penstock_permit_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                memory, 0);
  syscall(SYS_close, memory);
  return page != MAP_FAILED;
}

static connection* connect_to(const penstock_control* page, const penstock_node* where) {
  connection* fresh = new_connection();
  if (fresh == NULL) return NULL;
  for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k)
    atomic_store_explicit(&fresh->credit[k].owner, 0, memory_order_relaxed);
  fresh->where = *where;
  fresh->fd = dial(where, page->patience);
  if (fresh->fd < 0) return NULL;
  fresh->socket = penstock_socket_of(fresh->fd);
  if (greet(fresh->fd, page->job, where->id, fresh->page)) return fresh;
  hang_up(fresh);
  return NULL;
}

// ---- Which credit is this thread's, with the lock.

static penstock_credit* free_credit(connection* of, uint32_t me) {
  for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k) {
    penstock_credit* credit = &of->credit[k];
    // With our own id: of a thread that had it before us.
    if (owner_of(credit) != me && owner_of(credit) != 0) continue;
    credit->calls = credit->duration = credit->map_version = 0;
    credit->bytes = credit->until = 0;
    credit->beside = NULL;
    atomic_store_explicit(&credit->owner, me, memory_order_relaxed);
    return credit;
  }
  return NULL;
}

static void drop_broken(void) {
  penstock_credit** at = &mine;
  while (*at != NULL) {
    penstock_credit* credit = *at;
    if (credit->of->fd >= 0) {
      at = &credit->next;
      continue;
    }
    *at = credit->next;
    atomic_store_explicit(&credit->owner, 0, memory_order_relaxed);
  }
}

static penstock_credit* find(const penstock_node* where) {
  penstock_credit** at = &mine;
  while (*at != NULL && ((*at)->of->fd < 0 || !same(&(*at)->of->where, where))) at = &(*at)->next;
  penstock_credit* found = *at;
  if (found == NULL) return NULL;
  *at = found->next;
  found->next = mine;
  mine = found;
  return found;
}

// Among the connections that there are, which are counted.
static penstock_credit* find_free(const penstock_node* where, uint32_t me, uint32_t* count) {
  penstock_credit* credit = NULL;
  *count = 0;
  for (connection* c = connections; c != NULL && credit == NULL; c = c->next) {
    if (c->fd < 0 || !same(&c->where, where)) continue;
    ++*count;
    credit = free_credit(c, me);
  }
  return credit;
}

static penstock_credit* claim(const penstock_control* page, const penstock_node* where) {
  const uint32_t me = (uint32_t)syscall(SYS_gettid);
  uint32_t count;
  penstock_credit* credit = find_free(where, me, &count);
  if (credit == NULL) {
    free_abandoned();
    credit = find_free(where, me, &count);
  }
  if (credit == NULL && count < MOST_CONNECTIONS && !is_absent(where->id)) {
    connection* fresh = connect_to(page, where);
    if (fresh == NULL)
      set_absent(where->id);
    else
      set_present(where->id);
    if (fresh != NULL) credit = free_credit(fresh, me);
  }
  if (credit == NULL) {
    none_until = penstock_coarse_now() + SELDOM;
    none_by = atomic_load_explicit(&page->map.version, memory_order_relaxed);
    return NULL;
  }
  credit->next = mine;
  mine = credit;
  if (set_at_end != NULL) set_at_end(at_end, credit);
  return credit;
}

static penstock_credit* credit_at(const penstock_control* page, const penstock_node* where) {
  pthread_mutex_lock(&lock);
  drop_broken();
  penstock_credit* credit = find(where);
  if (credit == NULL) credit = claim(page, where);
  pthread_mutex_unlock(&lock);
  return credit;
}

// ---- Questions and answers.

static uint64_t name_of(int fd) {
  const penstock_file* file =
      penstock_managed(fd) ? atomic_load_explicit(&penstock_files[fd], memory_order_acquire) : NULL;
  return file == NULL ? 0 : file->inode ^ file->device * UINT64_C(0x9E3779B97F4A7C15);
}

static bool send_message(const penstock_credit* credit, const penstock_permit_message* message,
                         int flags) {
  const int fd = credit->of->fd;
  return fd >= 0 && penstock_socket_of(fd) == credit->of->socket &&
         syscall(SYS_sendto, fd, message, sizeof *message, MSG_NOSIGNAL | flags, NULL, 0) ==
             (long)sizeof *message;
}

// ---- What is not used, with the lock: threads that wait take it back, sooner than the I/O node.

// Recall first and look then, as the I/O node does. Returns whether there was anything to look at.
static bool take_back(penstock_credit* credit, uint64_t now) {
  penstock_permit* shared = credit->shared;
  const uint32_t number = __atomic_load_n(&credit->number, __ATOMIC_RELAXED);
  uint32_t recalled = __atomic_load_n(&shared->recalled, __ATOMIC_RELAXED);
  if (credit->calls == 0 || (credit->terms & PENSTOCK_METERED) == 0 || recalled == number)
    return false;
  const uint64_t made = __atomic_load_n(&shared->calls_made, __ATOMIC_RELAXED) + number;
  if (made != credit->seen) {
    credit->seen = made;
    credit->seen_at = now;
  }
  if (now - credit->seen_at < UNUSED || __atomic_load_n(&shared->in_call, __ATOMIC_RELAXED) != 0 ||
      !__atomic_compare_exchange_n(&shared->recalled, &recalled, number, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_RELAXED))
    return true;
  const penstock_permit_message message = {
      .message = PENSTOCK_GIVE_BACK, .permit = credit->index, .number = number};
  if (__atomic_load_n(&shared->in_call, __ATOMIC_SEQ_CST) == 0)
    send_message(credit, &message, MSG_DONTWAIT);
  return true;
}

// Whether other threads of this process have credits, which are then worth another look soon.
static bool take_back_unused(const penstock_credit* waiting) {
  static uint64_t again_at;
  bool any = false;
  pthread_mutex_lock(&lock);
  const uint64_t now = penstock_now();
  if (now >= again_at) {
    for (connection* c = connections; c != NULL; c = c->next) {
      if (c->fd < 0 || !same(&c->where, &waiting->of->where)) continue;
      for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k) any |= take_back(&c->credit[k], now);
    }
    again_at = now + UNUSED;
  }
  pthread_mutex_unlock(&lock);
  return any;
}

static bool has_hung_up(int fd) {
  if (fd < 0) return true;  // another thread found out
  struct pollfd socket = {.fd = fd, .events = POLLRDHUP};
  const struct timespec at_once = {0, 0};
  return syscall(SYS_ppoll, &socket, 1, &at_once, NULL, 0) > 0 && socket.revents != 0;
}

static bool is_answered(const penstock_credit* credit) {
  return __atomic_load_n(&credit->shared->answered, __ATOMIC_ACQUIRE) == credit->number;
}

// Without the lock, whose holder may be one of those that wait: connections are never freed, and
// what a wake-up reaches too early or for nothing looks again.
void penstock_permits_wake(void) {
  for (connection* c = __atomic_load_n(&connections, __ATOMIC_ACQUIRE); c != NULL; c = c->next) {
    for (uint32_t k = 0; c->fd >= 0 && k < PENSTOCK_PERMITS; ++k) {
      if (__atomic_load_n(&c->credit[k].shared->sleeps, __ATOMIC_RELAXED) != 0)
        syscall(SYS_futex, &c->credit[k].shared->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
  }
}

enum answer { ANSWERED, SILENT, STILL_QUEUED };

// Wait for the answer. An I/O node that lives and lets us queue shows it by its heartbeat, and is
// waited for like a gate; one that does not for as long as the patience with it.
static enum answer await_answer(const penstock_control* page, const penstock_credit* credit) {
  penstock_permit* shared = credit->shared;
  for (int k = 0; k < YIELDS; ++k) {
    if (is_answered(credit)) return ANSWERED;
    if (penstock_retired()) return STILL_QUEUED;
    syscall(SYS_sched_yield);
  }
  __atomic_store_n(&shared->sleeps, 1, __ATOMIC_SEQ_CST);
  const uint64_t began = penstock_now();
  uint64_t last_beat = began, look = FIRST_LOOK;
  uint32_t beat = __atomic_load_n(&shared->heartbeat, __ATOMIC_RELAXED);
  bool gone = false, queued = false;
  while (!is_answered(credit) && !gone && !penstock_retired()) {
    const uint64_t time = penstock_now();
    const uint32_t now = __atomic_load_n(&shared->heartbeat, __ATOMIC_RELAXED);
    queued = now != beat || (queued && time - last_beat < page->patience);
    if (now != beat) last_beat = time;
    beat = now;
    if (time - last_beat >= page->patience || time - began >= page->longest_wait) break;
    const uint32_t answered = __atomic_load_n(&shared->answered, __ATOMIC_SEQ_CST);
    if (answered == credit->number) break;
    const bool soon = take_back_unused(credit);
    const struct timespec timeout = {0, (long)(soon ? UNUSED : look)};
    if (syscall(SYS_futex, &shared->answered, FUTEX_WAIT, answered, &timeout, NULL, 0) == 0 ||
        errno != ETIMEDOUT)
      continue;
    if (!soon) look = 2 * look < SELDOM_LOOK ? 2 * look : SELDOM_LOOK;
    gone = has_hung_up(credit->of->fd);
    if (penstock_let_die()) break;
  }
  __atomic_store_n(&shared->sleeps, 0, __ATOMIC_RELAXED);
  if (is_answered(credit)) return ANSWERED;
  return (queued || penstock_retired()) && !gone ? STILL_QUEUED : SILENT;
}

// The I/O node is gone, or its answer never came.
static void lose(const penstock_credit* credit) {
  pthread_mutex_lock(&lock);
  if (credit->of->fd >= 0) set_absent(credit->of->where.id);  // else another thread was first
  hang_up(credit->of);
  pthread_mutex_unlock(&lock);
}

static bool ask(const penstock_control* page, penstock_credit* credit, const penstock_wish* wish,
                size_t bytes) {
  credit->calls = 0;
  if (++credit->number == 0) credit->number = 1;
  // A handler jumped out of an earlier call. If it only interrupted one, that is short of the mark.
  __atomic_store_n(&credit->shared->in_call, 0, __ATOMIC_RELEASE);
  int64_t offset = wish->offset;
  if (offset == PENSTOCK_AT_POSITION) offset = syscall(SYS_lseek, wish->fd, 0, SEEK_CUR);
  const penstock_permit_message message = {.message = PENSTOCK_ASK,
                                           .permit = credit->index,
                                           .number = credit->number,
                                           .kind = wish->kind,
                                           .file = name_of(wish->fd),
                                           .offset = offset < 0 ? 0 : (uint64_t)offset,
                                           .bytes = bytes};
  penstock_count_question();
  const enum answer answer =
      send_message(credit, &message, 0) ? await_answer(page, credit) : SILENT;
  if (answer == SILENT) lose(credit);
  if (answer != ANSWERED) return false;
  const penstock_permit* shared = credit->shared;
  credit->terms = shared->terms;
  credit->bytes = shared->bytes;
  credit->until = shared->until;
  credit->calls = shared->calls;
  return credit->calls > 0 && (credit->terms & PENSTOCK_UNMANAGED) == 0;
}

// Mark the call as under way, unless the credit was recalled. The I/O node recalls first and looks
// then; we mark first and look then: one of both notices the other.
static bool begin(penstock_credit* credit, size_t bytes, uint32_t* before) {
  penstock_permit* shared = credit->shared;
  *before = __atomic_exchange_n(&shared->in_call, credit->number, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&shared->recalled, __ATOMIC_SEQ_CST) == credit->number) {
    __atomic_store_n(&shared->in_call, *before, __ATOMIC_RELEASE);
    credit->calls = 0;
    return false;
  }
  const uint64_t had = credit->bytes;
  credit->bytes = had - (bytes < had ? bytes : had);
  const uint32_t calls = credit->calls;  // fewer than it had, where a handler made calls just now
  credit->calls = calls - (calls > 0);
  return true;
}

static bool is_measured(const penstock_credit* credit, size_t bytes) {
  return bytes >= MEASURED_BYTES || credit->calls % MEASURED_ONE_IN == 0;
}

bool penstock_has_credit(const penstock_control* page, const penstock_wish* wish,
                         penstock_grant* grant) {
  penstock_credit* credit = mine;
  // How late it was at the end of the last call is late enough: a recall needs no clock.
  if (credit == NULL || credit->calls == 0 || wish->bytes > credit->bytes ||
      credit->map_version != atomic_load_explicit(&page->map.version, memory_order_acquire) ||
      atomic_load_explicit(&penstock_my_slot()->last_call, memory_order_relaxed) >= credit->until ||
      penstock_is_copy())
    return false;
  if (!begin(credit, wish->bytes, &grant->before)) return false;
  grant->credit = credit;
  grant->striped = 0;
  grant->began = is_measured(credit, wish->bytes) ? penstock_now() : 0;
  return true;
}

bool penstock_has_none(const penstock_control* page) {
  return none_until != 0 && mine == NULL && !penstock_is_copy() &&
         none_by == atomic_load_explicit(&page->map.version, memory_order_relaxed) &&
         penstock_coarse_now() < none_until;
}

static bool covers(const penstock_credit* credit, size_t bytes) {
  return credit->calls > 0 && bytes <= credit->bytes && penstock_now() < credit->until;
}

// For a part of a call at one I/O node. NULL: it does not decide.
static penstock_credit* permission_at(const penstock_control* page, const penstock_node* where,
                                      const penstock_wish* wish, size_t bytes, uint32_t* before) {
  penstock_credit* credit = credit_at(page, where);
  if (credit == NULL) return NULL;
  if (covers(credit, bytes) && begin(credit, bytes, before)) return credit;
  // A credit that was recalled before we woke up, on a busy machine, was never used: ask again.
  const uint64_t began = penstock_now();
  do {
    if (!ask(page, credit, wish, bytes)) return NULL;
    if (begin(credit, bytes, before)) return credit;
  } while (penstock_now() - began < page->longest_wait);
  return NULL;
}

// Over several I/O nodes: those of the stripes that the call touches, each for its bytes, always in
// the order of the map.
static penstock_credit* over_stripes(const penstock_control* page, const penstock_route* route,
                                     const penstock_wish* wish, penstock_grant* grant) {
  size_t parts[PENSTOCK_MAP_NODES] = {0};
  int64_t from = wish->offset;
  if (from == PENSTOCK_AT_POSITION) from = syscall(SYS_lseek, wish->fd, 0, SEEK_CUR);
  uint64_t at = from < 0 ? 0 : (uint64_t)from;
  size_t left = wish->bytes > 0 ? wish->bytes : 1;
  const uint64_t rounds = left / route->nodes / route->stripe;  // of one stripe at each
  for (uint32_t k = 0; k < route->nodes; ++k) parts[k] = rounds * route->stripe;
  left -= rounds * route->stripe * route->nodes;
  while (left > 0) {
    const uint64_t rest = route->stripe - at % route->stripe;
    const size_t here = rest < left ? (size_t)rest : left;
    parts[at / route->stripe % route->nodes] += here;
    at += here;
    left -= here;
  }
  penstock_credit *first = NULL, **last = &first;
  for (uint32_t k = 0; k < route->nodes; ++k) {
    penstock_node where;
    if (parts[k] == 0) continue;
    if (!penstock_node_at(route->version, k, &where)) break;  // there is a new map
    uint32_t before;
    penstock_credit* credit = permission_at(page, &where, wish, parts[k], &before);
    if (credit == NULL) continue;
    if (first == NULL) grant->before = before;
    credit->map_version = 1;
    credit->part = parts[k];
    credit->beside = NULL;
    *last = credit;
    last = &credit->beside;
  }
  grant->striped = first == NULL ? 0 : first->part;
  return first;
}

enum penstock_permission penstock_ask_permission(const penstock_control* page,
                                                 const penstock_wish* wish, penstock_grant* grant) {
  *grant = (penstock_grant){0};
  penstock_route route = {0};
  uint32_t asked;
  do {  // whoever a map names that is no longer in force need not be there any more
    asked = route.version;
    if (!penstock_find_route(page, &route)) return PENSTOCK_NO_NODE;
    if (!route.local) return PENSTOCK_ELSEWHERE;
    if (route.version == asked) return PENSTOCK_REFUSED;
    if (route.stripe != 0) {
      grant->credit = over_stripes(page, &route, wish, grant);
    } else {
      grant->credit = permission_at(page, &route.where, wish, wish->bytes, &grant->before);
      if (grant->credit != NULL) grant->credit->map_version = route.version;
    }
  } while (grant->credit == NULL);
  if (is_measured(grant->credit, wish->bytes)) grant->began = penstock_now();
  return PENSTOCK_GRANTED;
}

// ---- The end of a call.

static void record(penstock_credit* credit, const penstock_wish* wish, int64_t offset,
                   size_t moved) {
  penstock_permit* shared = credit->shared;
  const uint64_t count = shared->calls_made;
  penstock_called* call = &shared->call[count % PENSTOCK_CALLS_KEPT];
  call->file = name_of(wish->fd);
  call->offset = offset < 0 ? 0 : (uint64_t)offset;
  call->ended = penstock_coarse_now();
  call->bytes = (uint32_t)moved;
  call->how = credit->duration * PENSTOCK_CALL_DURATION + wish->kind;
  __atomic_store_n(&shared->calls_made, count + 1, __ATOMIC_RELEASE);
}

static void give_back(penstock_credit* credit) {
  credit->calls = 0;
  const penstock_permit_message message = {
      .message = PENSTOCK_GIVE_BACK, .permit = credit->index, .number = credit->number};
  // Where the socket is full, the I/O node sees in the page that no call is under way.
  send_message(credit, &message, MSG_DONTWAIT);
}

static void finish(penstock_credit* credit, uint32_t before, size_t bytes) {
  penstock_permit* shared = credit->shared;
  __atomic_store_n(&shared->in_call, before, __ATOMIC_RELEASE);
  const bool recalled = __atomic_load_n(&shared->recalled, __ATOMIC_ACQUIRE) == credit->number;
  const bool used_up = (credit->terms & PENSTOCK_METERED) != 0 &&
                       (credit->calls == 0 || credit->bytes < bytes || credit->bytes == 0);
  if (recalled || used_up) give_back(credit);
}

static void end_part(penstock_credit* credit, uint32_t before, const penstock_wish* wish,
                     int64_t offset, size_t bytes, size_t moved) {
  record(credit, wish, offset, moved);
  penstock_count_by_node(credit->of->where.number, moved);
  finish(credit, before, bytes);
}

// Its end takes no system call: the I/O node sees in the page that no call is under way.
static size_t end_retired(const penstock_grant* grant, ssize_t result) {
  uint32_t before = grant->before;
  for (penstock_credit* credit = grant->credit; credit != NULL; before = 0) {
    __atomic_store_n(&credit->shared->in_call, before, __ATOMIC_RELEASE);
    credit = grant->striped == 0 ? NULL : credit->beside;
  }
  return result > 0 ? (size_t)result : 0;
}

size_t penstock_end_grant(const penstock_grant* grant, const penstock_wish* wish, ssize_t result) {
  penstock_credit* credit = grant->credit;
  if (credit == NULL) return 0;
  const int error = errno;
  if (penstock_retired()) return end_retired(grant, result);
  if (grant->began != 0) {
    const uint64_t units = (penstock_now() - grant->began) / 64;
    const uint32_t most = UINT32_MAX / PENSTOCK_CALL_DURATION;
    credit->duration = units < most ? (uint32_t)units : most;
  }
  size_t moved = result > 0 && wish->kind != PENSTOCK_CALL_SYNC ? (size_t)result : 0;
  int64_t offset = wish->offset;
  if (offset == PENSTOCK_AT_POSITION)
    offset = syscall(SYS_lseek, wish->fd, 0, SEEK_CUR) - (int64_t)moved;
  size_t permitted = moved;
  if (grant->striped == 0) {
    end_part(credit, grant->before, wish, offset, wish->bytes, moved);
  } else {
    permitted = 0;
    for (uint32_t before = grant->before; credit != NULL; before = 0, credit = credit->beside) {
      const size_t here = moved < credit->part ? moved : credit->part;
      end_part(credit, before, wish, offset, credit->part, here);
      offset += (int64_t)here;
      moved -= here;
      permitted += here;
    }
  }
  errno = error;
  return permitted;
}

// ---- The end of a thread, which may have been cancelled in a call.

static void thread_ends(void* value) {
  (void)value;
  if (mine == NULL || penstock_retired() || !penstock_enter()) return;
  pthread_mutex_lock(&lock);
  for (penstock_credit* credit = mine; credit != NULL; credit = credit->next) {
    __atomic_store_n(&credit->shared->in_call, 0, __ATOMIC_RELEASE);
    give_back(credit);
    atomic_store_explicit(&credit->owner, 0, memory_order_relaxed);
  }
  mine = NULL;
  pthread_mutex_unlock(&lock);
  penstock_leave();
}

void penstock_permits_start(void) {
  int (*create)(pthread_key_t*, void (*)(void*));
  *(void**)&create = penstock_find("pthread_key_create");
  if (create == NULL || create(&at_end, thread_ends) != 0) return;
  *(void**)&set_at_end = penstock_find("pthread_setspecific");
}

// ---- The descriptor table, and fork.

void penstock_permits_give_up_number(int fd) {
  pthread_mutex_lock(&lock);
  for (connection* c = connections; c != NULL; c = c->next) {
    if (c->fd != fd) continue;
    c->fd = penstock_keep((int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1));
    penstock_disown(fd, c->socket);
  }
  pthread_mutex_unlock(&lock);
}

void penstock_permits_fork(bool begins) {
  if (begins)
    pthread_mutex_lock(&lock);
  else
    pthread_mutex_unlock(&lock);
}

// The child's copies of our connections would keep them open after we have gone. A handler that
// forks comes back in the child too, into a call of its parent's permission.
void penstock_permits_forked(void) {
  mine = NULL;
  none_until = 0;
  for (connection* inherited = connections; inherited != NULL; inherited = inherited->next) {
    hang_up(inherited);
    for (uint32_t k = 0; k < PENSTOCK_PERMITS; ++k)
      atomic_store_explicit(&inherited->credit[k].owner, 0, memory_order_relaxed);
  }
}
