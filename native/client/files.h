// The table of managed files, by descriptor.

#ifndef PENSTOCK_FILES_H
#define PENSTOCK_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dirty_window.h"
#include "page.h"

// Descriptors beyond are simply direct and not counted.
#define PENSTOCK_DESCRIPTORS 65536

// The state of a file at one I/O node. `key` is its handle with the generation of our session
// there: with another one the handle is gone.
typedef struct {
  _Atomic uint64_t key;   // 0: not opened there
  _Atomic uint64_t host;  // whose kernel has what was written; 0: this one
  // Acknowledged writes, and how many of them are synced. Two threads may sync at once, and neither
  // is done before the I/O node has answered it.
  _Atomic uint32_t writes;
  _Atomic uint32_t synced;
} penstock_handle;

// A managed file: one for all copies of a descriptor. Memory of a file is only ever used for files,
// so that a late reader of the table never touches anything else.
typedef struct penstock_file {
  _Atomic uint32_t references;  // descriptors, and calls under way
  uint32_t access;              // of open: access mode and the flags that an I/O node keeps
  uint32_t file_system;         // of its root
  uint64_t device;
  uint64_t inode;
  _Atomic bool direct;         // an I/O node could not open it
  struct penstock_file* next;  // while it is unused
  pthread_mutex_t dirtying;    // of `dirty`
  penstock_dirty dirty;        // what we wrote ourselves
  penstock_handle handle[PENSTOCK_MAP_NODES];
} penstock_file;

extern _Atomic(penstock_file*) penstock_files[PENSTOCK_DESCRIPTORS];

static inline bool penstock_managed(int fd) {
  return fd >= 0 && fd < PENSTOCK_DESCRIPTORS &&
         atomic_load_explicit(&penstock_files[fd], memory_order_relaxed) != NULL;
}

// A descriptor was opened, or copied.
void penstock_opened(int fd);
void penstock_copied(int from, int to);

// A descriptor is about to be closed: returns its file, to be released after the call. The table is
// updated before the call, because another thread may get the same number right after it.
penstock_file* penstock_closing(int fd);

// The kernel refused to close it.
void penstock_not_closed(int fd, penstock_file* file);

// A held file's descriptor may have been closed without our seeing it: updates the table then, and
// releases the hold in any case.
int penstock_closed_unseen(int fd, penstock_file* held);

// What a close returns, with errno: the kernel's error before that of the I/O nodes.
int penstock_outcome(int result, int theirs);

// All descriptors of a range have been, or will be, closed.
void penstock_closed(unsigned first, unsigned last);

// For a call through an I/O node: until it is over, the number stays with this very file, and
// whoever closes or replaces it waits. (In the kernel, which of the two comes first is decided at
// once.)
penstock_file* penstock_pin(int fd);
void penstock_unpin(int fd);

// For a call that goes on for a while. Whoever releases a file last waits until its I/O nodes have
// closed it: the first error there, or 0.
penstock_file* penstock_hold(int fd);
int penstock_release(penstock_file* file);

// From inside penstock_enter, which is where to hold a file: a handler that forks finds what this
// thread holds counted in neither process.
int penstock_release_inside(penstock_file* file);

// The managed root that a descriptor's file lies below, and its path from there; -1: none.
int penstock_path(const penstock_control* page, int fd, char* path, const char** below);

// Descriptors that were open before this program began: a shell's redirections, a parent's files.
void penstock_learn_descriptors(void);

// The kernel's fstat: the C library's has another version in every release.
struct stat;
bool penstock_status(int fd, struct stat* status);

// From inside: syncs what I/O nodes of other hosts have of all files. An error is the next fsync's.
void penstock_sync_all(void);

// No descriptor above has ever been managed.
int penstock_highest(void);

// Around fork: holds the lock of the list of unused files.
void penstock_files_fork(bool begins);
void penstock_files_forked(void);

// The library's own descriptors, all sockets, which programs neither see nor close; but one may
// have closed a number past us, and use it for a file of its own.
bool penstock_is_own(int fd);
int penstock_keep(int fd);            // moves it out of the program's way; -1 if there is no room
uint64_t penstock_socket_of(int fd);  // by which it is known again; 0: it is no socket
void penstock_disown(int fd, uint64_t socket);
void penstock_close_own(int fd, uint64_t socket);

#endif
