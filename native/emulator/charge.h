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

// The time from which a call that begins now is charged.
uint64_t penstock_arrive(void);

// Reserves what a request takes, and returns when it will have been served.
uint64_t penstock_charge(struct penstock_file file, uint64_t arrival, uint64_t at, uint64_t bytes);
uint64_t penstock_charge_sync(struct penstock_file file, uint64_t arrival);

// Returns at that time, or at once if it has passed.
void penstock_wait_until(uint64_t finish);

#endif
