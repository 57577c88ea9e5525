#define _GNU_SOURCE
#include "process.h"
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
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
#include <unistd.h>

#include "files.h"
#include "forward.h"
#include "gate.h"
#include "locks.h"
#include "nodes.h"
#include "permits.h"
#include "real.h"
#include "slots.h"
#include "streams.h"

#define RETIRE_WAIT UINT64_C(1000000000)  // nanoseconds, for threads that are in calls
#define RETIRE_PAUSE 1000000

static const penstock_control* _Atomic control;
penstock_counters* penstock_counted;
static __thread bool inside;
static __thread uint64_t blocked;  // signals, by the program itself
static __thread bool forks_unprepared;
static _Atomic bool retired;
static _Atomic bool retiring;  // a thread waits for the others
static _Atomic int busy;       // threads that make system calls of ours
static __thread bool is_busy;
static __thread const penstock_control* settling;  // of the thread that retires us
static _Atomic pid_t self;
static _Atomic bool*
    original;  // in memory that a child finds wiped; NULL: this kernel cannot do that
static _Atomic uint64_t ordinal;  // plus one; 0: not yet assigned

const penstock_control* penstock_active(void) {
  const penstock_control* page = atomic_load_explicit(&control, memory_order_acquire);
  if (page == NULL) page = settling;
  return page != NULL && atomic_load_explicit(&page->gate.active, memory_order_relaxed) ? page
                                                                                        : NULL;
}

bool penstock_retired(void) { return atomic_load_explicit(&retired, memory_order_acquire); }

// The thread's flag is set only while it is counted, and both only until its next call of ours:
// a handler may run, or jump away, anywhere between.
void penstock_idle(void) {
  if (!is_busy) return;
  is_busy = false;
  atomic_fetch_sub(&busy, 1);
}

bool penstock_is_busy(void) { return is_busy; }

bool penstock_busy(void) {
  if (!is_busy) {
    atomic_fetch_add(&busy, 1);
    is_busy = true;
  }
  if (!atomic_load(&retired)) return true;
  penstock_idle();
  return false;
}

bool penstock_is_copy(void) {
  return original == NULL ? penstock_is_other_process()
                          : !atomic_load_explicit(original, memory_order_relaxed);
}

static bool has_other_id(void) {
  return (pid_t)syscall(SYS_getpid) != atomic_load_explicit(&self, memory_order_relaxed);
}

bool penstock_is_other_process(void) {
  const bool counted = is_busy;
  if (penstock_retired() || (!counted && !penstock_busy())) return false;
  const bool other = has_other_id();
  if (!counted) penstock_idle();
  return other;
}

bool penstock_enter(void) {
  if (inside || penstock_retired() || penstock_is_copy() || !penstock_busy()) return false;
  const uint64_t waiting = ~PENSTOCK_FAULTS;
  if (has_other_id() ||
      syscall(SYS_rt_sigprocmask, SIG_BLOCK, &waiting, &blocked, sizeof waiting) != 0) {
    penstock_idle();
    return false;
  }
  inside = true;
  return true;
}

void penstock_leave(void) {
  inside = false;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
  penstock_idle();
}

// Threads in a call are counted by their slots, the others here. Until a thread's store to its slot
// is seen, it has looked whether we are retired: so the first look is after a pause.
static void wait_for_others(const penstock_control* page) {
  const struct timespec pause = {0, RETIRE_PAUSE};
  const uint64_t end = penstock_now() + RETIRE_WAIT;
  do {
    penstock_gate_wake(page);
    penstock_permits_wake();
    syscall(SYS_nanosleep, &pause, NULL);
  } while ((atomic_load(&busy) > is_busy || penstock_others_in_calls()) && penstock_now() < end);
}

static void pass_through(void) {
  atomic_store(&retired, true);
  atomic_store_explicit(&control, NULL, memory_order_release);
}

static void settle(const penstock_control* page) {
  settling = page;
  pass_through();
  wait_for_others(page);
  penstock_sync_all();
  settling = NULL;
}

// Another thread that comes here meanwhile makes no system call: it might be too late.
void penstock_retire(void) {
  const int error = errno;
  const penstock_control* page = penstock_active();
  bool first = false;
  if (page != NULL && penstock_enter()) {
    first = !atomic_exchange(&retiring, true);
    if (first) settle(page);
    penstock_leave();
    if (first) atomic_store(&retiring, false);
  }
  pass_through();
  const uint64_t end = penstock_now() + 2 * RETIRE_WAIT;
  while (atomic_load(&retiring) && penstock_now() < end) continue;
  errno = error;
}

bool penstock_inside(void) { return inside; }

// By which somebody tells a program to end or to stop.
#define STOPS                                                                                    \
  (PENSTOCK_BIT(SIGINT) | PENSTOCK_BIT(SIGTERM) | PENSTOCK_BIT(SIGHUP) | PENSTOCK_BIT(SIGQUIT) | \
   PENSTOCK_BIT(SIGTSTP))
// That do nothing where they have no handler.
#define HARMLESS \
  (PENSTOCK_BIT(SIGCHLD) | PENSTOCK_BIT(SIGCONT) | PENSTOCK_BIT(SIGURG) | PENSTOCK_BIT(SIGWINCH))

bool penstock_let_die(void) {
  uint64_t pending = 0, deadly = 0, handled = 0, before;
  syscall(SYS_rt_sigpending, &pending, sizeof pending);
  pending &= ~blocked;
  for (int number = 1; number <= 64 && pending != 0; ++number) {
    struct sigaction action;
    const uint64_t bit = pending & PENSTOCK_BIT(number);
    // Those that the C library keeps for itself are none of ours.
    if (bit == 0 || sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    *(action.sa_handler == SIG_DFL ? &deadly : &handled) |= bit;
  }
  deadly &= ~HARMLESS;
  if (deadly != 0) {  // and no other, whose handler would run here
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &deadly, &before, sizeof before);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  }
  return (handled & STOPS) != 0;
}

uint64_t penstock_ordinal(void) {
  uint64_t known = atomic_load_explicit(&ordinal, memory_order_relaxed);
  if (known == 0) {
    const uint64_t next =
        1 + atomic_fetch_add_explicit(&penstock_counted->clients, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&ordinal, &known, next)) known = next;
  }
  return known - 1;
}

static void recognise_self(void) {
  atomic_store_explicit(&self, (pid_t)syscall(SYS_getpid), memory_order_relaxed);
  if (original != NULL) atomic_store_explicit(original, true, memory_order_relaxed);
}

// Until fork has ended, no handler runs: it would wait for locks that its own thread has.
static void fork_begins(void) {
  forks_unprepared = !penstock_enter();
  if (forks_unprepared) return;
  penstock_files_fork(true);
  penstock_locks_fork(true);
  penstock_nodes_fork(true);
}

static void fork_ended(void) {
  if (forks_unprepared) return;
  penstock_nodes_fork(false);
  penstock_locks_fork(false);
  penstock_files_fork(false);
  penstock_leave();
}

static void forked(void) {
  atomic_store(&busy, is_busy);
  atomic_store(&retiring, false);
  if (penstock_retired()) {
    fork_ended();
    return;
  }
  // The handler of a fault forked while we held state, or a copy did: that child passes everything
  // through for good.
  if (forks_unprepared) pass_through();
  recognise_self();
  atomic_store_explicit(&ordinal, 0, memory_order_relaxed);
  penstock_mine = NULL;  // the parent's
  penstock_gate_forked();
  penstock_locks_forked();
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
  const penstock_hello hello = {PENSTOCK_CONTROL_MAGIC, PENSTOCK_PAGE_VERSION,
                                (uint32_t)syscall(SYS_getpid)};
  if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) return false;
  union {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr aligned;
  } ancillary = {{0}};
  struct iovec piece = {welcome, sizeof *welcome};
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = ancillary.bytes,
                           .msg_controllen = sizeof ancillary.bytes};
  if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != (ssize_t)sizeof *welcome)
    return false;
  const struct cmsghdr* given = CMSG_FIRSTHDR(&message);
  if (given == NULL || given->cmsg_type != SCM_RIGHTS ||
      given->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return false;
  memcpy(pages, CMSG_DATA(given), 2 * sizeof(int));
  return welcome->magic == PENSTOCK_CONTROL_MAGIC && welcome->version == PENSTOCK_PAGE_VERSION;
}

// As much of the counters page as the agent's version has.
static penstock_counters* map_counters(int fd, bool* file_systems) {
  const size_t sizes[] = {sizeof(penstock_counters), offsetof(penstock_counters, moved),
                          offsetof(penstock_counters, node_bytes)};
  for (int k = 0; k < 3; ++k) {
    penstock_counters* counters = map(fd, sizes[k], PROT_READ | PROT_WRITE);
    if (counters == NULL) continue;
    penstock_counts_places = k <= 1;
    *file_systems = k == 0;
    return counters;
  }
  return NULL;
}

// Without an agent, or with one that does not answer as it should, everything passes through.
static void attach(const char* agent) {
  const int fd = connect_to(agent);
  if (fd < 0) return;
  penstock_welcome welcome;
  int pages[2] = {-1, -1};
  if (greet(fd, &welcome, pages)) {
    const size_t with_one_gate = offsetof(penstock_control, other_gates);
    const penstock_control* shared = map(pages[0], sizeof *shared, PROT_READ);
    bool several = false;
    penstock_counted = map_counters(pages[1], &several);
    several = several && shared != NULL && shared->bytes >= sizeof *shared;
    if (shared == NULL) shared = map(pages[0], with_one_gate, PROT_READ);
    if (shared != NULL && penstock_counted != NULL && shared->magic == PENSTOCK_CONTROL_MAGIC &&
        shared->version == PENSTOCK_PAGE_VERSION && shared->bytes >= with_one_gate &&
        penstock_counted->magic == PENSTOCK_COUNTERS_MAGIC &&
        penstock_counted->version == PENSTOCK_PAGE_VERSION &&
        penstock_counted->slots >= PENSTOCK_SLOTS) {
      for (uint32_t r = 0; several && r < shared->roots && r < PENSTOCK_ROOTS; ++r) {
        const uint32_t file_system = shared->root[r].file_system;
        if (file_system != 0 && file_system < PENSTOCK_FILE_SYSTEMS)
          penstock_several_file_systems = true;
      }
      atomic_store_explicit(&control, shared, memory_order_release);
    }
  }
  if (pages[0] >= 0) syscall(SYS_close, pages[0]);
  if (pages[1] >= 0) syscall(SYS_close, pages[1]);
  syscall(SYS_close, fd);
}

// What pthread_atfork is made of in glibc. As it is linked into us, it would keep us out of musl.
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void*)
    __attribute__((weak));
extern void* __dso_handle;

static void watch_fork(void) {
  int (*at_fork)(void (*)(void), void (*)(void), void (*)(void));
  *(void**)&at_fork = penstock_find("pthread_atfork");
  if (__register_atfork != NULL)
    __register_atfork(fork_begins, fork_ended, forked, __dso_handle);
  else if (at_fork != NULL)
    at_fork(fork_begins, fork_ended, forked);
}

// Whether seccomp restricts this process, since before its exec. Asked by calls that the dynamic
// linker has just made itself, and of a file: even to ask prctl might end the process.
static bool is_restricted(void) {
  static const char field[] = "\nSeccomp:\t";
  const int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[4096];
  size_t matched = 0;  // characters of the field's name: it may lie across two pieces
  char mode = '0';
  long bytes;
  while (matched <= sizeof field - 1 && (bytes = syscall(SYS_read, file, text, sizeof text)) > 0) {
    for (long k = 0; k < bytes && matched <= sizeof field - 1; ++k) {
      if (matched == sizeof field - 1) {
        mode = text[k];
        ++matched;
      } else {
        matched = text[k] == field[matched] ? matched + 1 : text[k] == field[0];
      }
    }
  }
  syscall(SYS_close, file);
  return mode != '0';
}

__attribute__((constructor)) static void start(void) {
  const int error = errno;
  penstock_real();
  if (getenv("PENSTOCK_AGENT") != NULL && is_restricted()) {
    pass_through();
    errno = error;
    return;
  }
  void* wiped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wiped != MAP_FAILED && madvise(wiped, 4096, MADV_WIPEONFORK) == 0) original = wiped;
  recognise_self();
  const char* disabled = getenv("PENSTOCK_DISABLE");
  const char* agent = getenv("PENSTOCK_AGENT");
  if (agent != NULL && (disabled == NULL || strcmp(disabled, "1") != 0)) {
    attach(agent);
    if (penstock_active() != NULL) {
      penstock_forget_calls_before_exec();
      watch_fork();
      penstock_limited();
      penstock_permits_start();
      penstock_learn_descriptors();
      penstock_streams_start();
    }
  }
  errno = error;
}
