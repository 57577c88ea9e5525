#define _GNU_SOURCE
#include "window.h"

#include <errno.h>
#include <fcntl.h>

#include "forward.h"
#include "process.h"

static uint64_t window(void) {
  const penstock_control* page = penstock_active();
  return page == NULL ? 0 : atomic_load_explicit(&page->dirty_window, memory_order_relaxed);
}

void penstock_wrote_inside(penstock_file* file, int fd, int64_t at, size_t bytes) {
  const uint64_t most = window();
  const long flags = syscall(SYS_fcntl, fd, F_GETFL);
  if (most == 0 || flags < 0 || (flags & (O_DIRECT | O_DSYNC)) != 0) return;
  // Where pwrite appends, its offset means nothing, and the position neither.
  if (at != PENSTOCK_AT_POSITION && (flags & O_APPEND) != 0) return;
  if (at == PENSTOCK_AT_POSITION) at = syscall(SYS_lseek, fd, 0, SEEK_CUR) - (int64_t)bytes;
  if (at < 0) return;
  pthread_mutex_lock(&file->dirtying);
  penstock_dirtied(&file->dirty, fd, (uint64_t)at, bytes, most);
  pthread_mutex_unlock(&file->dirtying);
}

void penstock_wrote(int fd, int64_t at, size_t bytes) {
  if (bytes == 0 || window() == 0 || !penstock_enter()) return;
  const int error = errno;
  penstock_file* file = penstock_pin(fd);
  if (file != NULL) {
    penstock_wrote_inside(file, fd, at, bytes);
    penstock_unpin(fd);
    penstock_release_inside(file);
  }
  penstock_leave();
  errno = error;
}

void penstock_drain_at_close(penstock_file* file, int fd) {
  if (window() == 0 || penstock_is_small(&file->dirty)) return;
  pthread_mutex_lock(&file->dirtying);
  penstock_drain(&file->dirty, fd);
  pthread_mutex_unlock(&file->dirtying);
}

void penstock_drain_all(void) {
  if (window() == 0 || !penstock_enter()) return;
  const int highest = penstock_highest();
  for (int fd = 0; fd <= highest; ++fd) {
    penstock_file* file = penstock_pin(fd);
    if (file == NULL) continue;
    pthread_mutex_lock(&file->dirtying);
    penstock_drain(&file->dirty, fd);
    pthread_mutex_unlock(&file->dirtying);
    penstock_unpin(fd);
    penstock_release_inside(file);
  }
  penstock_leave();
}

// What is left of a file once nobody writes to it through us any more.
static int late_error_retired(int fd) {
  penstock_file* file = penstock_hold(fd);
  if (file == NULL) return 0;
  const int error = penstock_take_error(&file->dirty);
  penstock_release(file);
  return error;
}

int penstock_late_error(int fd) {
  if (penstock_retired()) return late_error_retired(fd);
  if (!penstock_enter()) return 0;
  penstock_file* file = penstock_hold(fd);
  int error = 0;
  if (file != NULL) {
    pthread_mutex_lock(&file->dirtying);
    error = penstock_take_error(&file->dirty);
    pthread_mutex_unlock(&file->dirtying);
    penstock_release_inside(file);
  }
  penstock_leave();
  return error;
}
