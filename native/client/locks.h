// Whether this process holds a file lock: then it must not wait at the gate.
//
// Only the kernel knows which locks remain: a lock ends with an unlock of any part, with the close
// of another descriptor of the file, or with the last copy of a descriptor; or it is the parent's.
// This module only remembers which descriptors to ask about, and asks when a call meets a closed
// gate.

#ifndef PENSTOCK_LOCKS_H
#define PENSTOCK_LOCKS_H

#include <stdbool.h>

enum penstock_lock { PENSTOCK_FLOCK = 1, PENSTOCK_OFD = 2, PENSTOCK_POSIX = 4 };

// A lock of a kind was taken through a descriptor, or all such locks of its file were given back.
void penstock_locked(int fd, enum penstock_lock kind);
void penstock_unlocked(int fd, enum penstock_lock kind);

// A descriptor that was there when the program began: a lock may have come with it.
void penstock_lock_inherited(int fd);

// A descriptor was opened, without locks so far; or became a copy of another one.
void penstock_lock_opened(int fd);
void penstock_lock_copied(int from, int to);

bool penstock_holds_lock(void);

void penstock_locks_fork(bool begins);
void penstock_locks_forked(void);

#endif
