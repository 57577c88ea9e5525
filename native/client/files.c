#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "descriptor_path.h"
#include "handles.h"
#include "locks.h"
#include "process.h"
#include "slots.h"
#include "window.h"

_Atomic(penstock_file*) penstock_files[PENSTOCK_DESCRIPTORS];

static _Atomic uint64_t own[PENSTOCK_DESCRIPTORS];  // as of penstock_socket_of
static _Atomic uint32_t pins[PENSTOCK_DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of `unused`
static penstock_file* unused;
static _Atomic int highest = -1;  // of the descriptors that ever were managed

#define SLAB 16  // files that memory is taken for at once

static void forget_handles(penstock_file* file) {
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    atomic_store_explicit(&file->handle[k].key, 0, memory_order_relaxed);
    atomic_store_explicit(&file->handle[k].writes, 0, memory_order_relaxed);
    atomic_store_explicit(&file->handle[k].synced, 0, memory_order_relaxed);
  }
}

static penstock_file* new_file(void) {
  pthread_mutex_lock(&lock);
  if (unused == NULL) {
    // Not by malloc: programs bring their own, which may itself open files.
    penstock_file* slab =
        mmap(NULL, SLAB * sizeof *slab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; slab != MAP_FAILED && k < SLAB; ++k) {
      slab[k].next = unused;
      unused = &slab[k];
    }
  }
  penstock_file* file = unused;
  if (file != NULL) unused = file->next;
  pthread_mutex_unlock(&lock);
  return file;
}

static void recycle(penstock_file* file) {
  pthread_mutex_lock(&lock);
  file->next = unused;
  unused = file;
  pthread_mutex_unlock(&lock);
}

static bool was_last(penstock_file* file) {
  return atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) == 1;
}

static int discard(penstock_file* file) {
  const int error = penstock_close_everywhere(file);
  recycle(file);
  return error;
}

int penstock_release_inside(penstock_file* file) { return was_last(file) ? discard(file) : 0; }

int penstock_release(penstock_file* file) {
  // Better a little lost memory than a hanging handler.
  if (!was_last(file) || !penstock_enter()) return 0;
  const int error = discard(file);
  penstock_leave();
  return error;
}

penstock_file* penstock_hold(int fd) {
  if (fd < 0 || fd >= PENSTOCK_DESCRIPTORS) return NULL;
  for (;;) {
    penstock_file* file = atomic_load_explicit(&penstock_files[fd], memory_order_acquire);
    if (file == NULL) return NULL;
    uint32_t references = atomic_load_explicit(&file->references, memory_order_relaxed);
    // A file without references is about to be removed from the table.
    while (references != 0) {
      if (!atomic_compare_exchange_weak(&file->references, &references, references + 1)) continue;
      if (atomic_load_explicit(&penstock_files[fd], memory_order_acquire) == file) return file;
      penstock_release(file);
      break;
    }
  }
}

penstock_file* penstock_pin(int fd) {
  if (!penstock_managed(fd)) return NULL;
  atomic_fetch_add(&pins[fd], 1);
  penstock_file* file = penstock_hold(fd);
  if (file == NULL) atomic_fetch_sub(&pins[fd], 1);
  return file;
}

void penstock_unpin(int fd) { atomic_fetch_sub(&pins[fd], 1); }

// The table already has the number as not managed, so no other thread pins it.
static void wait_for_pins(int fd) {
  const struct timespec while_ = {0, 50000};
  while (!penstock_inside() && atomic_load(&pins[fd]) != 0 && penstock_busy()) {
    syscall(SYS_nanosleep, &while_, NULL);
    penstock_idle();
  }
}

static void set(int fd, penstock_file* file) {
  int top = atomic_load_explicit(&highest, memory_order_relaxed);
  while (file != NULL && fd > top && !atomic_compare_exchange_weak(&highest, &top, fd)) continue;
  penstock_file* before = atomic_exchange_explicit(&penstock_files[fd], file, memory_order_acq_rel);
  if (before != NULL) penstock_release(before);
}

static bool under(const penstock_root* root, const char* path, size_t length) {
  return root->length <= length && memcmp(root->path, path, root->length) == 0 &&
         (length == root->length || path[root->length] == '/');
}

int penstock_path(const penstock_control* page, int fd, char* path, const char** below) {
  char link[PENSTOCK_DESCRIPTOR_PATH];
  penstock_descriptor_path(fd, link);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length <= 0 || length >= PATH_MAX - 1) return -1;
  path[length] = '\0';
  int found = -1;
  for (uint32_t r = 0; r < page->roots && r < PENSTOCK_ROOTS; ++r) {
    if (!under(&page->root[r], path, (size_t)length)) continue;
    if (found < 0 || page->root[r].length > page->root[found].length) found = (int)r;
  }
  if (found >= 0 && below != NULL) {
    const uint32_t above = page->root[found].length;
    *below = path + above + (path[above] == '/');
  }
  return found;
}

bool penstock_status(int fd, struct stat* status) {
#if defined(SYS_fstat)
  return syscall(SYS_fstat, fd, status) == 0;
#else
  return syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH) == 0;
#endif
}

// `inherited`: the process had it when it started, such as a redirected output.
static void learn(int fd, bool inherited) {
  penstock_lock_opened(fd);
  const penstock_control* page = penstock_active();
  if (fd < 0 || fd >= PENSTOCK_DESCRIPTORS || page == NULL || penstock_is_other_process() ||
      !penstock_enter()) {
    return;
  }
  const int error = errno;
  struct stat status;
  char path[PATH_MAX];
  path[0] = path[PATH_MAX - 1] = '\0';  // whether the path could be read or not
  const long flags = syscall(SYS_fcntl, fd, F_GETFL);
  penstock_file* file = NULL;
  const bool regular = flags >= 0 && (flags & O_PATH) == 0 && penstock_status(fd, &status) &&
                       S_ISREG(status.st_mode);
  const int root = regular ? penstock_path(page, fd, path, NULL) : -1;
  const bool managed = root >= 0;
  if (regular && !managed && !inherited && (flags & O_ACCMODE) != O_RDONLY)
    penstock_count_open_elsewhere(path);
  if (managed && (file = new_file()) != NULL) {
    forget_handles(file);
    file->access = (uint32_t)flags & (O_ACCMODE | O_DIRECT | O_SYNC | O_DSYNC | O_NOATIME);
    const uint32_t file_system = page->root[root].file_system;
    file->file_system =
        penstock_several_file_systems && file_system < PENSTOCK_FILE_SYSTEMS ? file_system : 0;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->dirty = (penstock_dirty){0};
    atomic_store_explicit(&file->direct, false, memory_order_relaxed);
    atomic_store_explicit(&file->references, 1, memory_order_release);
    penstock_count_open();
  }
  penstock_leave();
  set(fd, file);
  errno = error;
}

void penstock_opened(int fd) { learn(fd, false); }

void penstock_copied(int from, int to) {
  penstock_lock_copied(from, to);
  if (to < 0 || to >= PENSTOCK_DESCRIPTORS || from == to || penstock_is_other_process()) return;
  set(to, penstock_hold(from));
}

void penstock_not_closed(int fd, penstock_file* file) { set(fd, file); }

penstock_file* penstock_closing(int fd) {
  if (!penstock_managed(fd) || penstock_is_other_process()) return NULL;
  penstock_file* file = atomic_exchange(&penstock_files[fd], NULL);
  if (file != NULL) wait_for_pins(fd);
  if (file != NULL && atomic_load(&file->references) == 1 && penstock_enter()) {
    penstock_settle(file, fd);
    penstock_drain_at_close(file, fd);
    penstock_leave();
  }
  return file;
}

int penstock_closed_unseen(int fd, penstock_file* held) {
  penstock_file* expected = held;
  if (!penstock_is_other_process() &&
      atomic_compare_exchange_strong(&penstock_files[fd], &expected, NULL))
    penstock_release(held);
  return penstock_release(held);
}

int penstock_outcome(int result, int theirs) {
  if (result == 0 && theirs != 0) errno = theirs;
  return theirs != 0 ? -1 : result;
}

void penstock_closed(unsigned first, unsigned last) {
  const int top = atomic_load_explicit(&highest, memory_order_relaxed);
  for (int fd = (int)first; first < PENSTOCK_DESCRIPTORS && fd <= top && (unsigned)fd <= last;
       ++fd) {
    penstock_file* file = penstock_closing(fd);
    if (file != NULL) penstock_release(file);
  }
}

void penstock_sync_all(void) {
  const int top = atomic_load_explicit(&highest, memory_order_relaxed);
  for (int fd = 0; fd <= top; ++fd) {
    penstock_file* file = penstock_hold(fd);
    if (file == NULL) continue;
    const int error = penstock_sync_everywhere(file, fd, PENSTOCK_FSYNC);
    if (error != 0) {
      pthread_mutex_lock(&file->dirtying);
      file->dirty.error = error;
      pthread_mutex_unlock(&file->dirtying);
    }
    penstock_release_inside(file);
  }
}

int penstock_highest(void) { return atomic_load_explicit(&highest, memory_order_relaxed); }

void penstock_files_fork(bool begins) {
  if (begins)
    pthread_mutex_lock(&lock);
  else
    pthread_mutex_unlock(&lock);
}

// The child has the parent's files, but not its sessions, nor its other threads' calls.
void penstock_files_forked(void) {
  const int top = atomic_load_explicit(&highest, memory_order_relaxed);
  for (int fd = 0; fd <= top; ++fd) {
    penstock_file* file = atomic_load_explicit(&penstock_files[fd], memory_order_relaxed);
    if (file != NULL) {
      atomic_store_explicit(&file->references, 0, memory_order_relaxed);
      // A thread that is not here may hold it. What the parent wrote is the parent's to wait for.
      file->dirtying = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
      file->dirty.newest.bytes = file->dirty.before.bytes = 0;
    }
    atomic_store_explicit(&pins[fd], 0, memory_order_relaxed);
  }
  for (int fd = 0; fd <= top; ++fd) {
    penstock_file* file = atomic_load_explicit(&penstock_files[fd], memory_order_relaxed);
    if (file == NULL) continue;
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
    // What the parent wrote through other hosts is still to be synced there.
    for (int k = 0; k < PENSTOCK_MAP_NODES; ++k)
      atomic_store_explicit(&file->handle[k].key, 0, memory_order_relaxed);
  }
}

void penstock_learn_descriptors(void) {
  const int directory =
      (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
      if (*name >= '0' && *name <= '9' && fd != directory) {
        learn(fd, true);
        penstock_lock_inherited(fd);
      }
      at += length;
    }
  }
  syscall(SYS_close, directory);
}

uint64_t penstock_socket_of(int fd) {
  struct stat status;
  return penstock_status(fd, &status) && S_ISSOCK(status.st_mode) ? (uint64_t)status.st_ino : 0;
}

bool penstock_is_own(int fd) {
  if (fd < 0 || fd >= PENSTOCK_DESCRIPTORS || penstock_retired()) return false;
  const uint64_t socket = atomic_load_explicit(&own[fd], memory_order_relaxed);
  const bool counted = penstock_is_busy();
  if (socket == 0 || (!counted && !penstock_busy())) return false;
  const int error = errno;
  const bool is = penstock_socket_of(fd) == socket;
  if (!counted) penstock_idle();
  errno = error;
  return is;
}

void penstock_disown(int fd, uint64_t socket) {
  atomic_compare_exchange_strong(&own[fd], &socket, 0);
}

void penstock_close_own(int fd, uint64_t socket) {
  penstock_disown(fd, socket);
  if (penstock_socket_of(fd) == socket) syscall(SYS_close, fd);
}

int penstock_keep(int fd) {
  if (fd < 0) return -1;
  // Far up, where neither a program's next descriptor nor its habit of closing the first few is.
  struct rlimit limit;
  long most = PENSTOCK_DESCRIPTORS;
  if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur < (rlim_t)most)
    most = (long)limit.rlim_cur;
  const long kept = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, most - most / 4);
  syscall(SYS_close, fd);
  if (kept >= PENSTOCK_DESCRIPTORS) syscall(SYS_close, kept);
  if (kept < 0 || kept >= PENSTOCK_DESCRIPTORS) return -1;
  atomic_store_explicit(&own[kept], penstock_socket_of((int)kept), memory_order_relaxed);
  return (int)kept;
}
