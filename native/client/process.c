#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "forward.h"
#include "nodes.h"
#include "real.h"
#include "streams.h"
#include "window.h"

static const penstock_control* _Atomic control;
static penstock_counters* counters;
static __thread penstock_slot* mine;
static __thread bool inside;
static __thread uint64_t past_the_gate;  // bytes since the gate was last moved
static __thread uint32_t gate_seen;
static __thread uint64_t blocked;  // signals, by the program itself
static __thread bool forks_unprepared;
static _Atomic int locked;
static _Atomic bool retired;
static _Atomic pid_t self;
static _Atomic bool* original;  // in memory that a child finds wiped; NULL: this kernel cannot do that
static _Atomic uint64_t ordinal;  // plus one; 0: not yet asked for

static uint64_t at(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t penstock_now(void) { return at(CLOCK_MONOTONIC); }

const penstock_control* penstock_active(void) {
  const penstock_control* page = atomic_load_explicit(&control, memory_order_acquire);
  return page != NULL && atomic_load_explicit(&page->active, memory_order_relaxed) ? page : NULL;
}

void penstock_retire(void) {
  atomic_store_explicit(&retired, true, memory_order_release);
  atomic_store_explicit(&control, NULL, memory_order_release);
}

bool penstock_retired(void) { return atomic_load_explicit(&retired, memory_order_acquire); }

bool penstock_is_copy(void) {
  return original == NULL ? penstock_is_stranger() : !atomic_load_explicit(original, memory_order_relaxed);
}

bool penstock_is_stranger(void) {
  return (pid_t)syscall(SYS_getpid) != atomic_load_explicit(&self, memory_order_relaxed);
}

#define BIT(signal) (UINT64_C(1) << ((signal)-1))
// Not those by which the processor tells of faults: blocked, they end the process.
#define WAITING (~(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS)))

bool penstock_enter(void) {
  if (inside || penstock_is_copy()) return false;
  const uint64_t waiting = WAITING;
  if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &waiting, &blocked, sizeof waiting) != 0) return false;
  inside = true;
  return true;
}

void penstock_leave(void) {
  inside = false;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
}

bool penstock_inside(void) { return inside; }

void penstock_let_die(void) {
  static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  uint64_t pending = 0;
  syscall(SYS_rt_sigpending, &pending, sizeof pending);
  for (size_t k = 0; k < sizeof fatal / sizeof *fatal; ++k) {
    struct sigaction action;
    if ((pending & ~blocked & BIT(fatal[k])) != 0 && sigaction(fatal[k], NULL, &action) == 0 &&
        action.sa_handler == SIG_DFL) {
      syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
    }
  }
}

static penstock_slot* claim(void) {
  const uint64_t k = atomic_fetch_add_explicit(&counters->taken, 1, memory_order_relaxed);
  mine = &counters->slot[k < PENSTOCK_SLOTS ? k : PENSTOCK_SLOTS - 1];
  atomic_store_explicit(&mine->pid, (uint64_t)syscall(SYS_getpid), memory_order_relaxed);
  return mine;
}

static penstock_slot* my_slot(void) { return mine != NULL ? mine : claim(); }

// Only this thread writes to its slot. Where threads outnumber slots, counts of the last may get lost.
static void add(_Atomic uint64_t* counter, uint64_t amount) {
  const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, before + amount, memory_order_relaxed);
}

void penstock_count_open(void) { add(&my_slot()->opens, 1); }

void penstock_count_failed_open(void) { add(&my_slot()->failed_open, 1); }

void penstock_count_forwarded(enum penstock_kind kind, size_t bytes) {
  penstock_slot* slot = my_slot();
  add(kind == PENSTOCK_WRITES ? &slot->forwarded_writes : &slot->forwarded_reads, 1);
  add(kind == PENSTOCK_WRITES ? &slot->forwarded_write_bytes : &slot->forwarded_read_bytes, bytes);
}

uint64_t penstock_ordinal(void) {
  uint64_t known = atomic_load_explicit(&ordinal, memory_order_relaxed);
  if (known == 0) {
    const uint64_t next = 1 + atomic_fetch_add_explicit(&counters->clients, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&ordinal, &known, next)) known = next;
  }
  return known - 1;
}

void penstock_locked(void) { atomic_store_explicit(&locked, 1, memory_order_relaxed); }

static void knock(void) {
  atomic_fetch_add_explicit(&counters->knocks, 1, memory_order_release);
  syscall(SYS_futex, &counters->knocks, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_at_the_gate(const penstock_control* page) {
  const uint64_t began = penstock_now();
  atomic_store_explicit(&my_slot()->waiting, began, memory_order_relaxed);
  knock();
  const uint64_t most = began + page->longest_wait;
  uint64_t time = began;
  while (time < most) {
    const uint32_t changes = atomic_load_explicit(&page->gate_changes, memory_order_acquire);
    const uint64_t until = atomic_load_explicit(&page->closed_until, memory_order_acquire);
    if (until <= time) break;
    const uint64_t left = (until < most ? until : most) - time;
    const struct timespec timeout = {(time_t)(left / UINT64_C(1000000000)),
                                     (long)(left % UINT64_C(1000000000))};
    syscall(SYS_futex, &page->gate_changes, FUTEX_WAIT, changes, &timeout, NULL, 0);
    time = penstock_now();
  }
  penstock_slot* slot = my_slot();
  atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
  add(&slot->waits, 1);
  add(&slot->waited, time - began);
  if (time >= most) add(&slot->gave_up, 1);
}

// Small bursts never wait, however many calls they are made of: logs, headers, indices.
static bool is_small(const penstock_control* page, size_t bytes) {
  const uint32_t changes = atomic_load_explicit(&page->gate_changes, memory_order_relaxed);
  if (changes != gate_seen) {
    gate_seen = changes;
    past_the_gate = 0;
  }
  if (bytes > page->never_waits - past_the_gate) return false;
  past_the_gate += bytes;
  return true;
}

void penstock_begin(size_t bytes) {
  const penstock_control* page = penstock_active();
  if (page == NULL) return;
  if (atomic_load_explicit(&page->closed_until, memory_order_relaxed) != 0 && !is_small(page, bytes) &&
      !atomic_load_explicit(&locked, memory_order_relaxed) && !penstock_is_stranger()) {
    const int error = errno;
    wait_at_the_gate(page);
    errno = error;
  }
  atomic_store_explicit(&my_slot()->in_flight, 1, memory_order_relaxed);
}

void penstock_end(enum penstock_kind kind, ssize_t result) {
  if (penstock_active() == NULL) return;
  penstock_slot* slot = my_slot();
  const uint64_t moved = result > 0 ? (uint64_t)result : 0;
  switch (kind) {
    case PENSTOCK_READS:
      add(&slot->reads, 1);
      add(&slot->read_bytes, moved);
      break;
    case PENSTOCK_WRITES:
      add(&slot->writes, 1);
      add(&slot->write_bytes, moved);
      break;
    case PENSTOCK_SYNCS:
      add(&slot->syncs, 1);
      break;
    case PENSTOCK_LEFT:
      add(&slot->left_to_kernel, 1);
      add(&slot->left_bytes, moved);
      break;
  }
  // A few milliseconds will do to tell phases apart, and cost less than the exact time.
  atomic_store_explicit(&slot->last_call, at(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
  atomic_store_explicit(&slot->in_flight, 0, memory_order_relaxed);
}

// For programs that say themselves where their phases are (penstock.h).
#define EXPORT __attribute__((visibility("default")))

EXPORT void penstock_phase_announce(uint64_t bytes) {
  if (penstock_active() == NULL || penstock_is_stranger()) return;
  atomic_fetch_add_explicit(&counters->announced, bytes, memory_order_relaxed);
}

EXPORT void penstock_phase_begin(void) {
  const penstock_control* page = penstock_active();
  if (page == NULL || penstock_is_stranger()) return;
  const int error = errno;
  atomic_fetch_add_explicit(&counters->phases_begun, 1, memory_order_release);
  if (atomic_load_explicit(&page->closed_until, memory_order_relaxed) != 0 &&
      !atomic_load_explicit(&locked, memory_order_relaxed)) {
    wait_at_the_gate(page);
  } else {
    knock();
  }
  errno = error;
}

EXPORT void penstock_phase_end(void) {
  if (penstock_active() == NULL || penstock_is_stranger()) return;
  const int error = errno;
  penstock_drain_all();
  atomic_fetch_add_explicit(&counters->phases_ended, 1, memory_order_release);
  knock();
  errno = error;
}

static void recognise_self(void) {
  atomic_store_explicit(&self, (pid_t)syscall(SYS_getpid), memory_order_relaxed);
  if (original != NULL) atomic_store_explicit(original, true, memory_order_relaxed);
}

static void fork_begins(void) {
  forks_unprepared = inside;
  if (forks_unprepared) return;
  penstock_files_fork(true);
  penstock_nodes_fork(true);
}

static void fork_ended(void) {
  if (forks_unprepared) return;
  penstock_nodes_fork(false);
  penstock_files_fork(false);
}

static void forked(void) {
  // A handler that forked amid our work left us half done: that child passes through for good.
  if (forks_unprepared) penstock_retire();
  recognise_self();
  atomic_store_explicit(&ordinal, 0, memory_order_relaxed);
  mine = NULL;  // the parent's
  past_the_gate = 0;
  penstock_nodes_forked();
  penstock_files_forked();
  fork_ended();
}

static void* map(int fd, size_t bytes, int protection) {
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0 || (size_t)status.st_size < bytes) return NULL;
  void* page = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
  return page == MAP_FAILED ? NULL : page;
}

static int connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, length);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const struct timeval patience = {.tv_sec = 1};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) == 0) return fd;
  syscall(SYS_close, fd);
  return -1;
}

static bool greet(int fd, penstock_welcome* welcome, int pages[2]) {
  const penstock_hello hello = {PENSTOCK_CONTROL_MAGIC, PENSTOCK_PAGE_VERSION, (uint32_t)syscall(SYS_getpid)};
  if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) return false;
  union {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr aligned;
  } ancillary;
  struct iovec piece = {welcome, sizeof *welcome};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = ancillary.bytes,
                           .msg_controllen = sizeof ancillary.bytes};
  if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != (ssize_t)sizeof *welcome) return false;
  const struct cmsghdr* given = CMSG_FIRSTHDR(&message);
  if (given == NULL || given->cmsg_type != SCM_RIGHTS || given->cmsg_len != CMSG_LEN(2 * sizeof(int))) return false;
  memcpy(pages, CMSG_DATA(given), 2 * sizeof(int));
  return welcome->magic == PENSTOCK_CONTROL_MAGIC && welcome->version == PENSTOCK_PAGE_VERSION;
}

// Without an agent, or with one that does not answer as it should, everything passes through.
static void attach(const char* agent) {
  const int fd = connect_to(agent);
  if (fd < 0) return;
  penstock_welcome welcome;
  int pages[2] = {-1, -1};
  if (greet(fd, &welcome, pages)) {
    penstock_control* shared = map(pages[0], sizeof *shared, PROT_READ);
    counters = map(pages[1], sizeof *counters, PROT_READ | PROT_WRITE);
    if (shared != NULL && counters != NULL && shared->magic == PENSTOCK_CONTROL_MAGIC &&
        shared->version == PENSTOCK_PAGE_VERSION && shared->bytes >= sizeof *shared &&
        counters->magic == PENSTOCK_COUNTERS_MAGIC && counters->version == PENSTOCK_PAGE_VERSION &&
        counters->slots >= PENSTOCK_SLOTS) {
      atomic_store_explicit(&control, shared, memory_order_release);
    }
  }
  if (pages[0] >= 0) syscall(SYS_close, pages[0]);
  if (pages[1] >= 0) syscall(SYS_close, pages[1]);
  syscall(SYS_close, fd);
}

__attribute__((constructor)) static void start(void) {
  const int error = errno;
  penstock_real();
  void* wiped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wiped != MAP_FAILED && madvise(wiped, 4096, 18 /* MADV_WIPEONFORK */) == 0) original = wiped;
  recognise_self();
  const char* disabled = getenv("PENSTOCK_DISABLE");
  const char* agent = getenv("PENSTOCK_AGENT");
  if (agent != NULL && (disabled == NULL || strcmp(disabled, "1") != 0)) {
    attach(agent);
    if (penstock_active() != NULL) {
      pthread_atfork(fork_begins, fork_ended, forked);
      penstock_limited();
      penstock_learn_descriptors();
      penstock_streams_start();
    }
  }
  errno = error;
}
