#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
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

#include "real.h"

// Descriptors beyond are simply direct and not counted.
#define MOST_DESCRIPTORS 65536

static _Atomic uint8_t managed[MOST_DESCRIPTORS];
static const penstock_control* _Atomic control;
static penstock_counters* counters;
static __thread penstock_slot* mine;
static _Atomic int locked;
static _Atomic pid_t self;

static uint64_t at(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t now(void) { return at(CLOCK_MONOTONIC); }

static const penstock_control* active(void) {
  const penstock_control* page = atomic_load_explicit(&control, memory_order_acquire);
  return page != NULL && atomic_load_explicit(&page->active, memory_order_relaxed) ? page : NULL;
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

// A child of vfork shares our memory until it execs: what it does to its own descriptors must not
// be written into our table. A child of fork has been told by `forked`.
static bool is_vfork_child(void) {
  return (pid_t)syscall(SYS_getpid) != atomic_load_explicit(&self, memory_order_relaxed);
}

bool penstock_managed(int fd) {
  return fd >= 0 && fd < MOST_DESCRIPTORS &&
         atomic_load_explicit(&managed[fd], memory_order_relaxed) != 0;
}

static bool under(const penstock_root* root, const char* path, size_t length) {
  return root->length <= length && memcmp(root->path, path, root->length) == 0 &&
         (length == root->length || path[root->length] == '/');
}

static bool lies_under_a_root(const penstock_control* page, int fd) {
  char link[32] = "/proc/self/fd/";
  char digits[12];
  size_t n = 0;
  for (int rest = fd; rest > 0 || n == 0; rest /= 10) digits[n++] = (char)('0' + rest % 10);
  size_t at = strlen(link);
  while (n > 0) link[at++] = digits[--n];
  link[at] = '\0';
  char path[PATH_MAX];
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  if (length <= 0 || length == (long)sizeof path) return false;
  for (uint32_t r = 0; r < page->roots && r < PENSTOCK_ROOTS; ++r) {
    if (under(&page->root[r], path, (size_t)length)) return true;
  }
  return false;
}

static bool is_regular(int fd) {
  // By number: the C library's fstat has another version in every release.
  struct stat status;
#if defined(SYS_fstat)
  if (syscall(SYS_fstat, fd, &status) != 0) return false;
#else
  if (syscall(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH) != 0) return false;
#endif
  return S_ISREG(status.st_mode);
}

void penstock_opened(int fd, int flags) {
  const penstock_control* page = active();
  if (fd < 0 || fd >= MOST_DESCRIPTORS || page == NULL || is_vfork_child()) return;
  const int error = errno;
  const bool ours = (flags & O_PATH) == 0 && is_regular(fd) && lies_under_a_root(page, fd);
  atomic_store_explicit(&managed[fd], ours, memory_order_relaxed);
  if (ours) add(&my_slot()->opens, 1);
  errno = error;
}

void penstock_copied(int from, int to) {
  if (to < 0 || to >= MOST_DESCRIPTORS || is_vfork_child()) return;
  atomic_store_explicit(&managed[to], penstock_managed(from), memory_order_relaxed);
}

void penstock_closed(int fd) {
  if (penstock_managed(fd) && !is_vfork_child()) {
    atomic_store_explicit(&managed[fd], 0, memory_order_relaxed);
  }
}

void penstock_closed_from(unsigned first, unsigned last) {
  if (is_vfork_child()) return;
  for (unsigned fd = first; fd <= last && fd < MOST_DESCRIPTORS; ++fd) {
    atomic_store_explicit(&managed[fd], 0, memory_order_relaxed);
  }
}

void penstock_locked(void) { atomic_store_explicit(&locked, 1, memory_order_relaxed); }

static void wait_at_the_gate(const penstock_control* page) {
  const uint64_t began = now();
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
    time = now();
  }
  penstock_slot* slot = my_slot();
  add(&slot->waits, 1);
  add(&slot->waited, time - began);
  if (time >= most) add(&slot->gave_up, 1);
}

void penstock_begin(size_t bytes) {
  const penstock_control* page = active();
  if (page == NULL) return;
  if (atomic_load_explicit(&page->closed_until, memory_order_relaxed) != 0 &&
      bytes > page->never_waits && !atomic_load_explicit(&locked, memory_order_relaxed) &&
      !is_vfork_child()) {
    const int error = errno;
    wait_at_the_gate(page);
    errno = error;
  }
  atomic_store_explicit(&my_slot()->in_flight, 1, memory_order_relaxed);
}

void penstock_end(enum penstock_kind kind, ssize_t result) {
  if (active() == NULL) return;
  penstock_slot* slot = my_slot();
  const uint64_t moved = result > 0 ? (uint64_t)result : 0;
  switch (kind) {
    case PENSTOCK_READ:
      add(&slot->reads, 1);
      add(&slot->read_bytes, moved);
      break;
    case PENSTOCK_WRITE:
      add(&slot->writes, 1);
      add(&slot->write_bytes, moved);
      break;
    case PENSTOCK_SYNC:
      add(&slot->syncs, 1);
      break;
    case PENSTOCK_LEFT:
      add(&slot->left_to_kernel, 1);
      break;
  }
  // A few milliseconds will do to tell phases apart, and cost less than the exact time.
  atomic_store_explicit(&slot->last_call, at(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
  atomic_store_explicit(&slot->in_flight, 0, memory_order_relaxed);
}

static void forked(void) {
  atomic_store_explicit(&self, (pid_t)syscall(SYS_getpid), memory_order_relaxed);
  mine = NULL;  // the parent's
}

// Descriptors that were open before this program began: a shell's redirections, a parent's files.
static void learn_open_descriptors(void) {
  const int directory = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  _Alignas(8) char entries[4096];
  long bytes;
  while ((bytes = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes;) {
      uint16_t length;
      memcpy(&length, entries + at + 16, sizeof length);
      const char* name = entries + at + 19;
      int fd = 0;
      for (const char* c = name; *c >= '0' && *c <= '9'; ++c) fd = 10 * fd + (*c - '0');
      if (*name >= '0' && *name <= '9' && fd != directory) penstock_opened(fd, 0);
      at += length;
    }
  }
  syscall(SYS_close, directory);
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
        shared->version == PENSTOCK_PAGE_VERSION && shared->bytes >= sizeof *shared) {
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
  forked();
  const char* disabled = getenv("PENSTOCK_DISABLE");
  const char* agent = getenv("PENSTOCK_AGENT");
  if (agent != NULL && (disabled == NULL || strcmp(disabled, "1") != 0)) {
    attach(agent);
    if (active() != NULL) {
      pthread_atfork(NULL, NULL, forked);
      learn_open_descriptors();
    }
  }
  errno = error;
}
