#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "process.h"

static uint64_t key_of(uint32_t generation, uint32_t handle) {
  return (uint64_t)generation << 32 | (handle + 1);
}

static int64_t open_there(penstock_connection* connection, const penstock_file* file, int fd) {
  penstock_request request = {.operation = PENSTOCK_OPEN, .flags = file->access};
  char path[PATH_MAX];
  const char* below;
  const penstock_control* page = penstock_active();
  const int root = page == NULL ? -1 : penstock_path(page, fd, path, &below);
  if (root < 0) return -ENOENT;
  request.file = (uint32_t)root;
  request.offset = file->inode;
  request.bytes = (uint32_t)strlen(below);
  return penstock_ask(connection, request, &(penstock_parcel){.text = below});
}

int64_t penstock_handle_of(penstock_connection* connection, penstock_file* file, int fd) {
  penstock_handle* handle = &file->handle[connection->place];
  uint64_t key = atomic_load_explicit(&handle->key, memory_order_acquire);
  if (key >> 32 == connection->generation) return (int64_t)(uint32_t)key - 1;
  const int64_t opened = open_there(connection, file, fd);
  if (opened < 0) return opened;
  if (!atomic_compare_exchange_strong(&handle->key, &key,
                                      key_of(connection->generation, (uint32_t)opened))) {
    // Another thread was faster; its handle will do for both.
    penstock_ask(connection,
                 (penstock_request){.operation = PENSTOCK_CLOSE, .file = (uint32_t)opened}, NULL);
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
  const int64_t result = penstock_ask(connection, request, &parcel);
  if (part->write && result > 0) {
    penstock_handle* there = &file->handle[connection->place];
    atomic_store_explicit(&there->host, connection->boot, memory_order_relaxed);
    atomic_fetch_add_explicit(&there->writes, 1, memory_order_release);
  }
  return result;
}

static int64_t ask_about(int place, uint64_t key, uint32_t operation) {
  penstock_connection* connection = penstock_reconnect(place, (uint32_t)(key >> 32));
  if (connection == NULL) return PENSTOCK_GONE;
  const int64_t result = penstock_ask(
      connection, (penstock_request){.operation = operation, .file = (uint32_t)key - 1}, NULL);
  penstock_disconnect(connection);
  return result;
}

// By another I/O node of the same host, whose kernel has the data unless it was booted since.
static int64_t sync_by_another(penstock_file* file, int fd, uint64_t host, uint32_t operation) {
  const penstock_control* page = penstock_active();
  size_t bytes = 1;
  bool wanted;
  penstock_connection* connection =
      page == NULL ? NULL : penstock_connect(page, file, 0, &bytes, &wanted);
  if (connection == NULL) return PENSTOCK_GONE;
  int64_t result = PENSTOCK_GONE;
  if (connection->boot == host) {
    const int64_t handle = penstock_handle_of(connection, file, fd);
    if (handle >= 0)
      result = penstock_ask(
          connection, (penstock_request){.operation = operation, .file = (uint32_t)handle}, NULL);
  }
  penstock_disconnect(connection);
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
    const uint64_t key = atomic_load_explicit(&there->key, memory_order_acquire);
    const uint32_t writes = atomic_load(&there->writes);
    if (!unsynced(there)) continue;
    const uint64_t host = atomic_load_explicit(&there->host, memory_order_relaxed);
    int64_t result =
        key != 0 ? ask_about(k, key, operation) : PENSTOCK_GONE;  // 0: written before a fork
    if (result == PENSTOCK_GONE && host != 0) result = sync_by_another(file, fd, host, operation);
    settled(there, writes);
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
    else if (sync_by_another(file, fd, host, PENSTOCK_FSYNC) == 0)
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
    const int64_t result = ask_about(k, key, PENSTOCK_CLOSE);
    if (error == 0) error = verdict(result, host);
  }
  return error;
}
