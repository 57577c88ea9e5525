// A bounded dirty window of one open file: its data in the page cache is written to the storage
// while more is produced.
//
// Whenever half a window has been written to the file, that half is sent to the storage, and the
// writer waits for the half before it: at most a window is dirty, and the writer proceeds at the
// storage's rate. One thread at a time may use it: data of a second one would not be counted.
//
// The kernel reports a write-back error once per open file, to a wait too: the error is kept for
// the next fsync, which would otherwise report success.

#ifndef PENSTOCK_DIRTY_WINDOW_H
#define PENSTOCK_DIRTY_WINDOW_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PENSTOCK_SMALL_FILE (UINT64_C(64) << 10)  // whose close does not wait for the storage

typedef struct {
  uint64_t from, to;
  uint64_t bytes;  // written to it; fewer than to - from where there are gaps
} penstock_span;

typedef struct {
  penstock_span newest;  // not yet given to the storage
  penstock_span before;  // given, and not yet waited for
  int error;             // of the storage, not yet reported
} penstock_dirty;

enum { PENSTOCK_START = 2, PENSTOCK_WAIT = 1 | 2 | 4 };  // flags of sync_file_range

static inline void penstock_flush_span(penstock_dirty* dirty, int fd, const penstock_span* span,
                                       unsigned how) {
  if (span->bytes == 0) return;
  const long result = syscall(SYS_sync_file_range, fd, span->from, span->to - span->from, how);
  // Other errors concern the call, not the data: a file system that does not support it.
  if (result != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) dirty->error = errno;
}

// `bytes` were written at an offset.
static inline void penstock_dirtied(penstock_dirty* dirty, int fd, uint64_t at, uint64_t bytes,
                                    uint64_t window) {
  penstock_span* newest = &dirty->newest;
  if (newest->bytes == 0 || at < newest->from) newest->from = at;
  if (newest->bytes == 0 || at + bytes > newest->to) newest->to = at + bytes;
  newest->bytes += bytes;
  if (newest->bytes < window / 2) return;
  penstock_flush_span(dirty, fd, newest, PENSTOCK_START);
  penstock_flush_span(dirty, fd, &dirty->before, PENSTOCK_WAIT);
  dirty->before = *newest;
  newest->bytes = 0;
}

// Write out the rest, and wait for it.
static inline void penstock_drain(penstock_dirty* dirty, int fd) {
  penstock_flush_span(dirty, fd, &dirty->newest, PENSTOCK_START);
  penstock_flush_span(dirty, fd, &dirty->before, PENSTOCK_WAIT);
  penstock_flush_span(dirty, fd, &dirty->newest, PENSTOCK_WAIT);
  dirty->before.bytes = dirty->newest.bytes = 0;
}

static inline bool penstock_is_small(const penstock_dirty* dirty) {
  return dirty->newest.bytes + dirty->before.bytes < PENSTOCK_SMALL_FILE;
}

// The error that an fsync has to report, once; 0 if none.
static inline int penstock_take_error(penstock_dirty* dirty) {
  const int error = dirty->error;
  dirty->error = 0;
  return error;
}

#endif
