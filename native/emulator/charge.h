// What a call on the emulated file system costs, and the wait for it.

#ifndef PENSTOCK_CHARGE_H
#define PENSTOCK_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// One of a call's files.
struct penstock_file {
  bool charged;  // a regular file under the emulated root
  uint64_t inode;
};
struct penstock_file penstock_look_at(int fd);

// Where the file lies, as Lustre's extended attribute says it; the bytes of that, or -1 with errno.
ssize_t penstock_layout(struct penstock_file file, uint8_t* value, size_t room);

// The time from which a call that begins now is charged.
uint64_t penstock_arrive(void);

enum penstock_emulated { PENSTOCK_EMULATED_READ, PENSTOCK_EMULATED_WRITE };

// Returns when the request has been served, which is also what it returns. It may change errno.
uint64_t penstock_serve(struct penstock_file file, enum penstock_emulated kind, uint64_t arrival,
                        uint64_t at, uint64_t bytes);

// The same for an fsync.
void penstock_flush(struct penstock_file file, uint64_t arrival);

#endif
