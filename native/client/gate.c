#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "locks.h"
#include "process.h"
#include "window.h"

#define SECOND UINT64_C(1000000000)
#define SLICE (SECOND / 10)

// Users and batch systems stop or suspend a program with these signals. Other signals may come from
// timers or children, and should not end a wait at the gate.
static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

static __thread uint64_t allowance_used;      // bytes
static __thread uint64_t allowance_refilled;  // CLOCK_MONOTONIC_COARSE nanoseconds
// Changes of each gate when this thread last looked.
static __thread uint32_t gate_seen[PENSTOCK_FILE_SYSTEMS];

static const penstock_gate* gate_of(const penstock_control* page, uint32_t file_system) {
  return file_system == 0 ? &page->gate : &page->other_gates[file_system - 1];
}

// Set once a signal has ended a wait in this process: later waits end at stop signals alone.
static _Atomic bool filter_signals;

#define EACH_STOP_SIGNAL(k)                       \
  size_t k = 0;                                   \
  k < sizeof stop_signals / sizeof *stop_signals; \
  ++k

static uint64_t stop_signal_set(void) {
  uint64_t set = 0;
  for (EACH_STOP_SIGNAL(k)) set |= PENSTOCK_BIT(stop_signals[k]);
  return set;
}

// Has the program installed a handler for any stop signal in the set?
static bool is_handled(uint64_t set) {
  for (EACH_STOP_SIGNAL(k)) {
    struct sigaction action;
    if ((set & PENSTOCK_BIT(stop_signals[k])) != 0 &&
        sigaction(stop_signals[k], NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
        action.sa_handler != SIG_IGN) {
      return true;
    }
  }
  return false;
}

// With several threads, the kernel delivers a signal that this one blocks to another one.
static bool is_single_threaded(void) {
  struct stat threads;
  return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &threads, 0) == 0 &&
         threads.st_nlink == 3;
}

// Sleep until the gate changes, or for `time` nanoseconds. True if a signal handler ran.
static bool sleep_for(const penstock_gate* gate, uint32_t changes, uint64_t time) {
  const struct timespec timeout = {(time_t)(time / SECOND), (long)(time % SECOND)};
  return syscall(SYS_futex, &gate->changes, FUTEX_WAIT, changes, &timeout, NULL, 0) != 0 &&
         errno == EINTR;
}

// Sleep for at most a slice. True if a stop signal arrived. A single thread blocks the stop signals
// and checks which are pending afterwards. Where other threads would receive them, it blocks all
// other signals instead, so that a handler that ran was a stop signal's.
static bool sleep_with_mask(const penstock_gate* gate, uint32_t changes, uint64_t time) {
  const bool single = is_single_threaded();
  const uint64_t mask = single ? stop_signal_set() : ~(PENSTOCK_FAULTS | stop_signal_set());
  uint64_t before = 0, pending = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &before, sizeof mask);
  bool stop = sleep_for(gate, changes, time < SLICE ? time : SLICE) && !single;
  if (single && syscall(SYS_rt_sigpending, &pending, sizeof pending) == 0)
    stop = is_handled(pending & ~before);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  return stop;
}

// Sleep until the gate changes, or for a limited time. True if a signal ends the wait. The kernel
// does not report which signal ran a handler: the first one in a process counts as a stop signal.
static bool sleep_at_gate(const penstock_gate* gate, uint32_t changes, uint64_t time) {
  if (atomic_load_explicit(&filter_signals, memory_order_relaxed))
    return sleep_with_mask(gate, changes, time);
  return sleep_for(gate, changes, time) && is_handled(stop_signal_set()) &&
         !atomic_exchange(&filter_signals, true);
}

static void wake_agent(void) {
  atomic_fetch_add_explicit(&penstock_counted->wakeups, 1, memory_order_release);
  syscall(SYS_futex, &penstock_counted->wakeups, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void penstock_gate_wake(const penstock_control* page) {
  for (uint32_t k = 0; k < (penstock_several_file_systems ? PENSTOCK_FILE_SYSTEMS : 1); ++k)
    syscall(SYS_futex, &gate_of(page, k)->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_at_gate(const penstock_control* page, const penstock_gate* gate) {
  const uint64_t began = penstock_now();
  atomic_store_explicit(&penstock_my_slot()->waiting, began, memory_order_relaxed);
  wake_agent();
  const uint64_t most = began + page->longest_wait;
  uint64_t time = began;
  bool interrupted = false;
  while (time < most && !interrupted && !penstock_retired()) {
    const uint32_t changes = atomic_load_explicit(&gate->changes, memory_order_acquire);
    const uint64_t until = atomic_load_explicit(&gate->closed_until, memory_order_acquire);
    if (until <= time) break;
    interrupted = sleep_at_gate(gate, changes, (until < most ? until : most) - time);
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

static bool is_closed(const penstock_gate* gate) {
  return atomic_load_explicit(&gate->closed_until, memory_order_relaxed) != 0;
}

// Wait at the gate, unless this process holds a file lock: the job whose turn it is may wait for
// that lock. Keeps errno.
static void pass_gate(const penstock_control* page, const penstock_gate* gate) {
  const int error = errno;
  const uint64_t until = atomic_load_explicit(&gate->closed_until, memory_order_relaxed);
  if (until > penstock_now() && penstock_holds_lock())
    penstock_add(&penstock_my_slot()->locked, 1);
  else
    wait_at_gate(page, gate);
  errno = error;
}

// Small accesses (logs, headers, indices) never wait: each thread may move `never_waits` bytes per
// second past a closed gate. The allowance refills over time, and at each change of the gate.
static bool is_small(const penstock_control* page, uint32_t file_system, size_t bytes) {
  const uint32_t changes =
      atomic_load_explicit(&gate_of(page, file_system)->changes, memory_order_relaxed);
  const uint64_t most = page->never_waits;
  if (changes != gate_seen[file_system]) {
    gate_seen[file_system] = changes;
    allowance_used = 0;
    allowance_refilled = penstock_coarse_now();
  }
  if (bytes > most) return false;
  if (bytes > most - allowance_used) {
    const uint64_t now = penstock_coarse_now();
    const uint64_t time = now - allowance_refilled < SECOND ? now - allowance_refilled : SECOND;
    const uint64_t back = time / 1000 * most / (SECOND / 1000);
    allowance_used -= back < allowance_used ? back : allowance_used;
    allowance_refilled = now;
  }
  if (bytes > most - allowance_used) return false;
  allowance_used += bytes;
  return true;
}

// 0 also for a file that was closed meanwhile.
static uint32_t file_system_of(int fd) {
  if (!penstock_several_file_systems) return 0;
  const penstock_file* file =
      penstock_managed(fd) ? atomic_load_explicit(&penstock_files[fd], memory_order_acquire) : NULL;
  return file == NULL ? 0 : file->file_system;
}

static void begin(const penstock_control* page, uint32_t file_system, size_t bytes) {
  penstock_slot* slot = penstock_my_slot();
  atomic_store_explicit(&slot->in_flight, file_system + 1, memory_order_relaxed);
  // Who retires us waits for the calls that it sees.
  atomic_signal_fence(memory_order_seq_cst);
  const penstock_gate* gate = gate_of(page, file_system);
  if (!is_closed(gate) || penstock_retired() || is_small(page, file_system, bytes) ||
      penstock_is_other_process())
    return;
  pass_gate(page, gate);
  // A signal handler may have made calls while this one waited.
  atomic_store_explicit(&slot->in_flight, file_system + 1, memory_order_relaxed);
}

void penstock_begin(int fd, size_t bytes) {
  const penstock_control* page = penstock_active();
  if (page != NULL) begin(page, file_system_of(fd), bytes);
}

void penstock_begin_both(int in, int out, size_t bytes) {
  const bool both = penstock_managed(in) && penstock_managed(out);
  penstock_begin(penstock_managed(in) ? in : out, bytes);
  if (both && file_system_of(in) != file_system_of(out)) penstock_begin(out, bytes);
}

static void count(int fd, enum penstock_kind kind, uint64_t moved) {
  penstock_slot* slot = penstock_my_slot();
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
      return;
    case PENSTOCK_LEFT:
      penstock_add(&slot->left_to_kernel, 1);
      penstock_add(&slot->left_bytes, moved);
      break;
  }
  penstock_count_by_file_system(file_system_of(fd), moved);
}

static void end(void) {
  penstock_slot* slot = penstock_my_slot();
  // A clock of a few milliseconds is exact enough to separate phases, and cheaper to read.
  atomic_store_explicit(&slot->last_call, penstock_coarse_now(), memory_order_relaxed);
  atomic_store_explicit(&slot->in_flight, 0, memory_order_relaxed);
}

// Of a call that was under way when we were retired.
static void end_retired(void) {
  if (penstock_mine != NULL)
    atomic_store_explicit(&penstock_mine->in_flight, 0, memory_order_relaxed);
}

void penstock_end(int fd, enum penstock_kind kind, ssize_t result) {
  if (penstock_active() == NULL) {
    end_retired();
    return;
  }
  count(fd, kind, result > 0 ? (uint64_t)result : 0);
  end();
}

void penstock_end_both(int in, int out, ssize_t result) {
  if (penstock_active() == NULL) {
    end_retired();
    return;
  }
  const uint64_t moved = result > 0 ? (uint64_t)result : 0;
  count(penstock_managed(in) ? in : out, PENSTOCK_LEFT, moved);
  if (penstock_managed(in) && penstock_managed(out) && file_system_of(in) != file_system_of(out))
    penstock_count_by_file_system(file_system_of(out), moved);
  end();
}

void penstock_gate_forked(void) { allowance_used = 0; }

// The interface of programs that mark their own phases (penstock.h).
#define EXPORT __attribute__((visibility("default")))

EXPORT void penstock_phase_announce(uint64_t bytes) {
  if (penstock_active() == NULL || penstock_is_other_process()) return;
  atomic_fetch_add_explicit(&penstock_counted->announced, bytes, memory_order_relaxed);
}

EXPORT void penstock_phase_begin(void) {
  const penstock_control* page = penstock_active();
  if (page == NULL || penstock_is_other_process() || !penstock_busy()) return;
  const int error = errno;
  atomic_fetch_add_explicit(&penstock_counted->phases_begun, 1, memory_order_release);
  // On one of several file systems, the first call says which.
  if (!penstock_several_file_systems && is_closed(&page->gate))
    pass_gate(page, &page->gate);
  else
    wake_agent();
  penstock_idle();
  errno = error;
}

EXPORT void penstock_phase_end(void) {
  if (penstock_active() == NULL || penstock_is_other_process()) return;
  const int error = errno;
  penstock_drain_all();
  atomic_fetch_add_explicit(&penstock_counted->phases_ended, 1, memory_order_release);
  if (penstock_busy()) wake_agent();
  penstock_idle();
  errno = error;
}
