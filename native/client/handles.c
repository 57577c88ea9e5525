#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "process.h"

static uint64_t key_of(uint32_t generation, uint32_t handle) {
  return (uint64_t)generation << 32 | (handle + 1);
}

static int64_t open_there(penstock_connection* connection, const penstock_file* file, int fd,
                          bool wait) {
  penstock_request request = {.operation = PENSTOCK_OPEN, .flags = file->access};
  char path[PATH_MAX];
  const char* below;
  const penstock_control* page = penstock_active();
  const int root = page == NULL ? -1 : penstock_path(page, fd, path, &below);
  if (root < 0) return -ENOENT;
  request.file = (uint32_t)root;
  request.offset = file->inode;
  request.bytes = (uint32_t)strlen(below);
  return penstock_ask(connection, request, &(penstock_parcel){.text = below}, wait);
}

int64_t penstock_handle_of(penstock_connection* connection, penstock_file* file, int fd,
                           bool wait) {
  penstock_handle* handle = &file->handle[connection->place];
  uint64_t key = atomic_load_explicit(&handle->key, memory_order_acquire);
  if (key >> 32 == connection->generation) return (int64_t)(uint32_t)key - 1;
  const int64_t opened = open_there(connection, file, fd, wait);
  if (opened < 0) return opened;
  if (!atomic_compare_exchange_strong(&handle->key, &key,
                                      key_of(connection->generation, (uint32_t)opened))) {
    // Another thread was faster; its handle will do for both.
    penstock_ask(connection,
                 (penstock_request){.operation = PENSTOCK_CLOSE, .file = (uint32_t)opened}, NULL,
                 false);
    return key >> 32 == connection->generation ? (int64_t)(uint32_t)key - 1 : PENSTOCK_GONE;
  }
  return opened;
}

int64_t penstock_move(penstock_connection* connection, penstock_file* file, uint32_t handle,
                      const penstock_part* part) {
  const penstock_request request = {.operation = part->write ? PENSTOCK_WRITE : PENSTOCK_READ,
                                    .file = handle,
                                    .offset = part->offset,
                                    .bytes = (uint32_t)part->bytes,
                                    .flags = part->flags};
  const penstock_parcel parcel = {.out = part->write ? part->pieces : NULL,
                                  .in = part->write ? NULL : part->pieces,
                                  .skip = part->skip};
  connection->device = file->device;
  connection->inode = file->inode;
  connection->offset = request.offset;
  connection->end = request.offset + request.bytes;
  const int64_t result = penstock_ask(connection, request, &parcel, part->write);
  if (part->write && result > 0) {
    penstock_handle* there = &file->handle[connection->place];
    atomic_store_explicit(&there->host, connection->boot, memory_order_relaxed);
    atomic_fetch_add_explicit(&there->writes, 1, memory_order_release);
  }
  return result;
}

static int64_t close_there(int place, uint64_t key, bool wait) {
  penstock_connection* connection = penstock_reconnect(place, (uint32_t)(key >> 32));
  if (connection == NULL) return PENSTOCK_GONE;
  const penstock_request request = {.operation = PENSTOCK_CLOSE, .file = (uint32_t)key - 1};
  const int64_t result = penstock_ask(connection, request, NULL, wait);
  penstock_disconnect(connection);
  return result;
}

// By an I/O node of the host whose kernel has the data, unless it was booted since.
static int64_t sync_at(const penstock_control* page, int place, penstock_file* file, int fd,
                       uint64_t host, uint32_t operation) {
  bool interrupted = false;
  penstock_connection* connection = penstock_return_to(page, place, &interrupted);
  if (connection == NULL) return interrupted ? -EINTR : PENSTOCK_GONE;
  int64_t result = PENSTOCK_GONE;
  if (connection->boot == host) {
    const int64_t handle = penstock_handle_of(connection, file, fd, true);
    const penstock_request request = {.operation = operation, .file = (uint32_t)handle};
    if (handle >= 0) result = penstock_ask(connection, request, NULL, true);
    if (handle == -EINTR) result = handle;
  }
  penstock_disconnect(connection);
  return result;
}

// By the I/O node that wrote the data, if it is there, or else by another one of its host.
static int64_t sync_there(penstock_file* file, int fd, int place, uint32_t operation) {
  const penstock_control* page = penstock_active();
  if (page == NULL) return PENSTOCK_GONE;
  const penstock_handle* there = &file->handle[place];
  const uint64_t host = atomic_load_explicit(&there->host, memory_order_relaxed);
  // Written before a fork: places are others now.
  const bool before_fork = atomic_load_explicit(&there->key, memory_order_acquire) == 0;
  int64_t result = PENSTOCK_GONE;
  if (!before_fork) result = sync_at(page, place, file, fd, host, operation);
  const int another = penstock_place_of_map(page);
  if (result == PENSTOCK_GONE && another >= 0 && (before_fork || another != place))
    result = sync_at(page, another, file, fd, host, operation);
  return result;
}

// The result of a sync or close at an I/O node: 0 or an error. Data that no I/O node can answer for
// may be lost.
static int verdict(int64_t result, uint64_t host) {
  if (result == PENSTOCK_GONE) return host != 0 ? EIO : 0;
  return result < 0 ? (int)-result : 0;
}

static bool unsynced(penstock_handle* there) {
  return atomic_load(&there->writes) != atomic_load(&there->synced);
}

// An error is reported once: the next caller gets only errors of later writes.
static void settled(penstock_handle* there, uint32_t writes) {
  uint32_t synced = atomic_load(&there->synced);
  while ((int32_t)(writes - synced) > 0 &&
         !atomic_compare_exchange_weak(&there->synced, &synced, writes))
    continue;
}

bool penstock_unsynced_elsewhere(penstock_file* file) {
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    if (unsynced(&file->handle[k]) && atomic_load(&file->handle[k].host) != 0) return true;
  }
  return false;
}

int penstock_sync_everywhere(penstock_file* file, int fd, uint32_t operation) {
  int error = 0;
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    penstock_handle* there = &file->handle[k];
    const uint32_t writes = atomic_load(&there->writes);
    if (!unsynced(there)) continue;
    const uint64_t host = atomic_load_explicit(&there->host, memory_order_relaxed);
    const int64_t result = sync_there(file, fd, k, operation);
    if (result != -EINTR) settled(there, writes);  // else nothing is known of the data
    if (error == 0) error = verdict(result, host);
  }
  return error;
}

void penstock_settle(penstock_file* file, int fd) {
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    penstock_handle* there = &file->handle[k];
    const uint64_t key = atomic_load_explicit(&there->key, memory_order_acquire);
    const uint64_t host = atomic_load_explicit(&there->host, memory_order_relaxed);
    if (key == 0 || host == 0 || !unsynced(there)) continue;
    const uint32_t writes = atomic_load(&there->writes);
    penstock_connection* connection = penstock_reconnect(k, (uint32_t)(key >> 32));
    if (connection != NULL)
      penstock_disconnect(connection);
    else if (sync_there(file, fd, k, PENSTOCK_FSYNC) == 0)
      settled(there, writes);
  }
}

int penstock_close_everywhere(penstock_file* file) {
  int error = 0;
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    penstock_handle* there = &file->handle[k];
    const uint64_t key = atomic_exchange(&there->key, 0);
    if (key == 0) continue;
    const uint64_t host =
        unsynced(there) ? atomic_load_explicit(&there->host, memory_order_relaxed) : 0;
    const int64_t result = close_there(k, key, host != 0);
    if (error == 0) error = verdict(result, host);
  }
  return error;
}
