#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "locks.h"
#include "process.h"
#include "window.h"

#define SECOND UINT64_C(1000000000)
#define SLICE (SECOND / 10)

// By these, people and batch systems ask a program to stop. All others may come from timers or
// children.
static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

static __thread uint64_t allowance_used;  // bytes, of the allowance
static __thread uint64_t refilled;        // when the allowance last was
static __thread uint32_t gate_seen;
static _Atomic bool
    choosy;  // a signal has ended a wait of this process: from now on it matters which

#define EACH_ASKING(k)                \
  size_t k = 0;                       \
  k < sizeof asking / sizeof *asking; \
  ++k

static uint64_t all_asking(void) {
  uint64_t all = 0;
  for (EACH_ASKING(k)) all |= PENSTOCK_BIT(asking[k]);
  return all;
}

// Does the program handle any of those that ask, out of a set?
static bool is_handled(uint64_t of) {
  for (EACH_ASKING(k)) {
    struct sigaction action;
    if ((of & PENSTOCK_BIT(asking[k])) != 0 && sigaction(asking[k], NULL, &action) == 0 &&
        action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
      return true;
    }
  }
  return false;
}

// Another thread would take what this one puts off.
static bool is_alone(void) {
  struct stat threads;
  return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &threads, 0) == 0 &&
         threads.st_nlink == 3;
}

// True: a handler ran meanwhile.
static bool sleep_for(const penstock_control* page, uint32_t changes, uint64_t time) {
  const struct timespec timeout = {(time_t)(time / SECOND), (long)(time % SECOND)};
  return syscall(SYS_futex, &page->gate_changes, FUTEX_WAIT, changes, &timeout, NULL, 0) != 0 &&
         errno == EINTR;
}

// Signals that ask are put off and looked for; where another thread would take them, all others are
// put off instead, and a handler that ran was one of those that ask.
static bool sleep_choosily(const penstock_control* page, uint32_t changes, uint64_t time) {
  const bool alone = is_alone();
  const uint64_t put_off = alone ? all_asking() : ~(PENSTOCK_FAULTS | all_asking());
  uint64_t before = 0, pending = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &put_off, &before, sizeof put_off);
  bool asked = sleep_for(page, changes, time < SLICE ? time : SLICE) && !alone;
  if (alone && syscall(SYS_rt_sigpending, &pending, sizeof pending) == 0)
    asked = is_handled(pending & ~before);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  return asked;
}

// Sleep until the gate changes, or for a limited time. True if a signal asks the wait to end. The
// kernel does not say which signal ran a handler: the first one in a process counts as asking.
static bool sleep_at_the_gate(const penstock_control* page, uint32_t changes, uint64_t time) {
  if (atomic_load_explicit(&choosy, memory_order_relaxed))
    return sleep_choosily(page, changes, time);
  return sleep_for(page, changes, time) && is_handled(all_asking()) &&
         !atomic_exchange(&choosy, true);
}

static void knock(void) {
  atomic_fetch_add_explicit(&penstock_counted->knocks, 1, memory_order_release);
  syscall(SYS_futex, &penstock_counted->knocks, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_at_the_gate(const penstock_control* page) {
  const uint64_t began = penstock_now();
  atomic_store_explicit(&penstock_my_slot()->waiting, began, memory_order_relaxed);
  knock();
  const uint64_t most = began + page->longest_wait;
  uint64_t time = began;
  bool interrupted = false;
  while (time < most && !interrupted) {
    const uint32_t changes = atomic_load_explicit(&page->gate_changes, memory_order_acquire);
    const uint64_t until = atomic_load_explicit(&page->closed_until, memory_order_acquire);
    if (until <= time) break;
    interrupted = sleep_at_the_gate(page, changes, (until < most ? until : most) - time);
    time = penstock_now();
  }
  penstock_slot* slot = penstock_my_slot();
  atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
  penstock_add(&slot->waits, 1);
  penstock_add(&slot->waited, time - began);
  if (interrupted)
    penstock_add(&slot->interrupted, 1);
  else if (time >= most)
    penstock_add(&slot->gave_up, 1);
}

static bool is_closed(const penstock_control* page) {
  return atomic_load_explicit(&page->closed_until, memory_order_relaxed) != 0;
}

// Whoever holds a file lock goes on: the job whose turn it is may wait for that lock.
static void come_to_the_gate(const penstock_control* page) {
  const int error = errno;
  const uint64_t until = atomic_load_explicit(&page->closed_until, memory_order_relaxed);
  if (until > penstock_now() && penstock_holds_lock())
    penstock_add(&penstock_my_slot()->locked, 1);
  else
    wait_at_the_gate(page);
  errno = error;
}

// What is little for its time never waits, however many calls it is made of: logs, headers,
// indices.
static bool is_small(const penstock_control* page, size_t bytes) {
  const uint32_t changes = atomic_load_explicit(&page->gate_changes, memory_order_relaxed);
  const uint64_t most = page->never_waits;
  if (changes != gate_seen) {
    gate_seen = changes;
    allowance_used = 0;
    refilled = penstock_coarse_now();
  }
  if (bytes > most) return false;
  if (bytes > most - allowance_used) {
    const uint64_t now = penstock_coarse_now();
    const uint64_t time = now - refilled < SECOND ? now - refilled : SECOND;
    const uint64_t back = time / 1000 * most / (SECOND / 1000);
    allowance_used -= back < allowance_used ? back : allowance_used;
    refilled = now;
  }
  if (bytes > most - allowance_used) return false;
  allowance_used += bytes;
  return true;
}

void penstock_begin(size_t bytes) {
  const penstock_control* page = penstock_active();
  if (page == NULL) return;
  if (is_closed(page) && !is_small(page, bytes) && !penstock_is_stranger()) come_to_the_gate(page);
  atomic_store_explicit(&penstock_my_slot()->in_flight, 1, memory_order_relaxed);
}

void penstock_end(enum penstock_kind kind, ssize_t result) {
  if (penstock_active() == NULL) return;
  penstock_slot* slot = penstock_my_slot();
  const uint64_t moved = result > 0 ? (uint64_t)result : 0;
  switch (kind) {
    case PENSTOCK_READS:
      penstock_add(&slot->reads, 1);
      penstock_add(&slot->read_bytes, moved);
      break;
    case PENSTOCK_WRITES:
      penstock_add(&slot->writes, 1);
      penstock_add(&slot->write_bytes, moved);
      break;
    case PENSTOCK_SYNCS:
      penstock_add(&slot->syncs, 1);
      break;
    case PENSTOCK_LEFT:
      penstock_add(&slot->left_to_kernel, 1);
      penstock_add(&slot->left_bytes, moved);
      break;
  }
  // A few milliseconds will do to tell phases apart, and cost less than the exact time.
  atomic_store_explicit(&slot->last_call, penstock_coarse_now(), memory_order_relaxed);
  atomic_store_explicit(&slot->in_flight, 0, memory_order_relaxed);
}

void penstock_gate_forked(void) { allowance_used = 0; }

// For programs that say themselves where their phases are (penstock.h).
#define EXPORT __attribute__((visibility("default")))

EXPORT void penstock_phase_announce(uint64_t bytes) {
  if (penstock_active() == NULL || penstock_is_stranger()) return;
  atomic_fetch_add_explicit(&penstock_counted->announced, bytes, memory_order_relaxed);
}

EXPORT void penstock_phase_begin(void) {
  const penstock_control* page = penstock_active();
  if (page == NULL || penstock_is_stranger()) return;
  const int error = errno;
  atomic_fetch_add_explicit(&penstock_counted->phases_begun, 1, memory_order_release);
  if (is_closed(page))
    come_to_the_gate(page);
  else
    knock();
  errno = error;
}

EXPORT void penstock_phase_end(void) {
  if (penstock_active() == NULL || penstock_is_stranger()) return;
  const int error = errno;
  penstock_drain_all();
  atomic_fetch_add_explicit(&penstock_counted->phases_ended, 1, memory_order_release);
  knock();
  errno = error;
}
