#define _GNU_SOURCE
#include "locks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "descriptor_path.h"
#include "files.h"
#include "process.h"

#define INHERITED 8
#define FUSE 0x65735546
#define PROBES 8

static _Atomic uint8_t
    suspected[PENSTOCK_DESCRIPTORS];  // the kinds of locks that a descriptor may have
static _Atomic int highest = -1;      // of the descriptors that ever were suspected
static _Atomic bool beyond;        // a lock was taken through a descriptor that is not in the table
static _Atomic bool kernel_tells;  // the kernel was seen to list locks; those before 4.1 do not
static _Atomic int probes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void suspect(int fd, uint8_t kinds) {
  atomic_fetch_or(&suspected[fd], kinds);
  int top = atomic_load(&highest);
  while (fd > top && !atomic_compare_exchange_weak(&highest, &top, fd)) continue;
}

enum answer { NO, YES, CLOSED, UNKNOWN };

static enum answer is_shown(int fd) {
  char path[PENSTOCK_DESCRIPTOR_PATH], info[512];
  penstock_descriptor_info(fd, path);
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? CLOSED : UNKNOWN;
  // /proc lists locks before the fields that only some kinds of files have.
  const long bytes = syscall(SYS_read, file, info, sizeof info - 1);
  syscall(SYS_close, file);
  if (bytes <= 0) return UNKNOWN;
  info[bytes] = '\0';
  if (strstr(info, "\nlock:") == NULL) return NO;
  atomic_store_explicit(&kernel_tells, true, memory_order_relaxed);
  return YES;
}

// A FUSE server that keeps locks itself does not report them to the kernel.
static bool is_fuse(int fd) {
  struct statfs status;
  return syscall(SYS_fstatfs, fd, &status) != 0 || status.f_type == FUSE;
}

static bool may_be_held(int fd, uint8_t kinds) {
  switch (is_shown(fd)) {
    case CLOSED:
      return false;
    case NO:
      if (kinds == INHERITED) return false;
      return !atomic_load_explicit(&kernel_tells, memory_order_relaxed) || is_fuse(fd);
    default:
      return true;
  }
}

void penstock_locked(int fd, enum penstock_lock kind) {
  if (penstock_active() == NULL || penstock_is_other_process()) return;
  if (fd < 0 || fd >= PENSTOCK_DESCRIPTORS) {
    atomic_store(&beyond, true);
    return;
  }
  suspect(fd, (uint8_t)kind);
  if (atomic_load_explicit(&kernel_tells, memory_order_relaxed) || atomic_load(&probes) >= PROBES)
    return;
  atomic_fetch_add(&probes, 1);
  if (!penstock_enter()) return;
  const int error = errno;
  is_shown(fd);
  errno = error;
  penstock_leave();
}

static bool is_suspected(int fd) {
  return fd >= 0 && fd < PENSTOCK_DESCRIPTORS &&
         atomic_load_explicit(&suspected[fd], memory_order_relaxed) != 0;
}

void penstock_unlocked(int fd, enum penstock_lock kind) {
  // What came with a descriptor may have been just this lock; if it was not, the kernel knows.
  if (is_suspected(fd) && !penstock_is_other_process())
    atomic_fetch_and(&suspected[fd], (uint8_t)~kind);
}

void penstock_lock_inherited(int fd) {
  if (fd >= 0 && fd < PENSTOCK_DESCRIPTORS) suspect(fd, INHERITED);
}

void penstock_lock_opened(int fd) {
  if (is_suspected(fd) && !penstock_is_other_process()) atomic_store(&suspected[fd], 0);
}

void penstock_lock_copied(int from, int to) {
  if (from == to || to < 0 || (!is_suspected(from) && !is_suspected(to)) ||
      penstock_is_other_process())
    return;
  const uint8_t kinds = is_suspected(from) ? atomic_load(&suspected[from]) : 0;
  if (to >= PENSTOCK_DESCRIPTORS) {
    if ((kinds & ~INHERITED) != 0) atomic_store(&beyond, true);
    return;
  }
  atomic_store(&suspected[to], 0);
  if (kinds != 0) suspect(to, kinds);
}

bool penstock_holds_lock(void) {
  if (atomic_load(&beyond)) return true;
  if (atomic_load(&highest) < 0) return false;
  if (!penstock_enter()) return true;
  bool held = false;
  pthread_mutex_lock(&mutex);
  for (int fd = 0; !held && fd <= atomic_load(&highest); ++fd) {
    if (!is_suspected(fd)) continue;
    // Cleared first, so that a lock that another thread takes meanwhile stays recorded.
    const uint8_t kinds = atomic_exchange(&suspected[fd], 0);
    held = may_be_held(fd, kinds);
    if (held) suspect(fd, kinds);
  }
  pthread_mutex_unlock(&mutex);
  penstock_leave();
  return held;
}

void penstock_locks_fork(bool begins) {
  if (begins)
    pthread_mutex_lock(&mutex);
  else
    pthread_mutex_unlock(&mutex);
}

// Those by which fcntl locks for a process are the parent's.
void penstock_locks_forked(void) {
  for (int fd = 0; fd <= atomic_load(&highest); ++fd) {
    if (is_suspected(fd)) atomic_fetch_and(&suspected[fd], (uint8_t)~PENSTOCK_POSIX);
  }
}
