#define _GNU_SOURCE
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "process.h"

#define SHARED (PENSTOCK_SLOTS - 1)  // by all who find no other
#define SELDOM UINT64_C(100000000)   // nanoseconds until another is looked for

__thread penstock_slot* penstock_mine;
bool penstock_counts_places;
bool penstock_several_file_systems;

// Thread ids mean something only inside a namespace, and a job may have several (containers).
static uint64_t this_thread(void) {
  static _Atomic uint64_t names;
  uint64_t namespace = atomic_load_explicit(&names, memory_order_relaxed);
  if (namespace == 0) {
    struct stat status;
    if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) != 0) return 0;
    namespace = (uint64_t)status.st_ino << 32;
    atomic_store_explicit(&names, namespace, memory_order_relaxed);
  }
  return namespace == 0 ? 0 : namespace | (uint32_t)syscall(SYS_gettid);
}

static bool is_gone(uint64_t owner, uint64_t me) {
  if (owner == me) return true;  // what this thread was before it called exec
  if (owner == 0 || owner >> 32 != me >> 32) return false;
  return syscall(SYS_tkill, (pid_t)(uint32_t)owner, 0) != 0 && errno == ESRCH;
}

// Its thread may have been killed during a call.
static void forget_call(penstock_slot* slot) {
  atomic_store_explicit(&slot->in_flight, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
}

// A slot whose thread ended, was killed, or went with its process. Its counts stay, and go on.
// Where none was found, the next threads do not look: a system call for each slot.
static penstock_slot* abandoned(uint64_t from, uint64_t me) {
  static _Atomic uint64_t again_at;
  const uint64_t now = penstock_coarse_now();
  if (now < atomic_load_explicit(&again_at, memory_order_relaxed)) me = 0;
  for (uint64_t k = 0; me != 0 && k < SHARED; ++k) {
    penstock_slot* slot = &penstock_counted->slot[(from + k) % SHARED];
    uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
    if (!is_gone(owner, me) || !atomic_compare_exchange_strong(&slot->owner, &owner, me)) continue;
    forget_call(slot);
    return slot;
  }
  if (me != 0) atomic_store_explicit(&again_at, now + SELDOM, memory_order_relaxed);
  return &penstock_counted->slot[SHARED];
}

bool penstock_others_in_calls(void) {
  const uint64_t pid = (uint64_t)syscall(SYS_getpid), me = this_thread();
  const uint64_t taken = atomic_load_explicit(&penstock_counted->taken, memory_order_relaxed);
  for (uint64_t k = 0; k < taken && k < PENSTOCK_SLOTS; ++k) {
    const penstock_slot* slot = &penstock_counted->slot[k];
    if (slot == penstock_mine || atomic_load(&slot->pid) != pid ||
        (atomic_load(&slot->in_flight) == 0 && atomic_load(&slot->waiting) == 0))
      continue;
    const uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
    if (owner >> 32 == me >> 32 && !is_gone(owner, me)) return true;
  }
  return false;
}

penstock_slot* penstock_claim(void) {
  const int error = errno;
  const bool counted = penstock_is_busy();
  if (!counted && !penstock_busy()) return &penstock_counted->slot[SHARED];
  const uint64_t me = this_thread();
  const uint64_t k = atomic_fetch_add_explicit(&penstock_counted->taken, 1, memory_order_relaxed);
  penstock_mine = k < SHARED ? &penstock_counted->slot[k] : abandoned(k, me);
  if (k < SHARED) atomic_store_explicit(&penstock_mine->owner, me, memory_order_relaxed);
  atomic_store_explicit(&penstock_mine->pid, (uint64_t)syscall(SYS_getpid), memory_order_relaxed);
  if (!counted) penstock_idle();
  errno = error;
  return penstock_mine;
}

void penstock_forget_calls_before_exec(void) {
  const uint64_t pid = (uint64_t)syscall(SYS_getpid), names = this_thread() >> 32;
  const uint64_t taken = atomic_load_explicit(&penstock_counted->taken, memory_order_relaxed);
  for (uint64_t k = 0; k < taken && k < PENSTOCK_SLOTS; ++k) {
    penstock_slot* slot = &penstock_counted->slot[k];
    if (atomic_load_explicit(&slot->pid, memory_order_relaxed) != pid) continue;
    const uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
    if (owner == 0 || owner >> 32 == names) forget_call(slot);
  }
}

void penstock_count_open(void) { penstock_add(&penstock_my_slot()->opens, 1); }

static bool begins(const char* path, const char* with) {
  return strncmp(path, with, strlen(with)) == 0;
}

// The first few directories, so that a person can be told where a job writes whose bytes are not
// seen. A path that is too long is left out.
static void note_directory(const char* path) {
  const char* slash = strrchr(path, '/');
  if (slash == NULL) return;
  const size_t length = slash == path ? 1 : (size_t)(slash - path);
  if (length > PENSTOCK_DIRECTORY_BYTES) return;
  for (int k = 0; k < PENSTOCK_DIRECTORIES; ++k) {
    penstock_directory* at = &penstock_counted->elsewhere[k];
    uint32_t state = atomic_load_explicit(&at->state, memory_order_acquire);
    if (state == 0 && atomic_compare_exchange_strong(&at->state, &state, 1)) {
      memcpy(at->path, path, length);
      at->length = (uint32_t)length;
      atomic_store_explicit(&at->state, 2, memory_order_release);
      return;
    }
    if (state == 2 && at->length == length && memcmp(at->path, path, length) == 0) return;
  }
}

void penstock_count_open_elsewhere(const char* path) {
  // Memory and the kernel's own files are not storage.
  if (*path != '/' || begins(path, "/memfd:") || begins(path, "/dev/") || begins(path, "/proc/") ||
      begins(path, "/sys/"))
    return;
  penstock_add(&penstock_my_slot()->opens_elsewhere, 1);
  if (penstock_counts_places) note_directory(path);
}

// Few threads use more than a few I/O nodes: these have counters of their own, which no other
// thread writes to.
static bool count_alone(uint32_t number, uint64_t bytes) {
  const ptrdiff_t slot = penstock_my_slot() - penstock_counted->slot;
  if (slot == SHARED) return false;
  for (int k = 0; k < PENSTOCK_SLOT_NODES; ++k) {
    penstock_node_bytes* counter = &penstock_counted->by_node[slot][k];
    const uint64_t owner = atomic_load_explicit(&counter->node, memory_order_relaxed);
    if (owner != 0 && owner != number) continue;
    penstock_add(&counter->bytes, bytes);
    if (owner == 0) atomic_store_explicit(&counter->node, number, memory_order_release);
    return true;
  }
  return false;
}

void penstock_count_by_node(uint32_t number, uint64_t bytes) {
  if (!penstock_counts_places || number == 0 || number > PENSTOCK_SITE_NODES) return;
  if (!count_alone(number, bytes))
    atomic_fetch_add_explicit(&penstock_counted->node_bytes[number - 1], bytes,
                              memory_order_relaxed);
}

void penstock_count_by_file_system(uint32_t file_system, uint64_t bytes) {
  if (!penstock_several_file_systems) return;
  const ptrdiff_t slot = penstock_my_slot() - penstock_counted->slot;
  penstock_add(&penstock_counted->moved[slot][file_system], bytes);
}

void penstock_count_failed_open(void) { penstock_add(&penstock_my_slot()->failed_open, 1); }

void penstock_count_question(void) { penstock_add(&penstock_my_slot()->questions, 1); }

void penstock_count_carried(size_t bytes) {
  penstock_add(&penstock_my_slot()->carried_bytes, bytes);
}

void penstock_count_forwarded(enum penstock_kind kind, size_t bytes) {
  penstock_slot* slot = penstock_my_slot();
  const bool writes = kind == PENSTOCK_WRITES;
  penstock_add(writes ? &slot->forwarded_writes : &slot->forwarded_reads, 1);
  penstock_add(writes ? &slot->forwarded_write_bytes : &slot->forwarded_read_bytes, bytes);
}
