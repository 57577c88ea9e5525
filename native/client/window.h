// Direct writes run ahead of the storage by a bounded window, where the control page says so.

#ifndef PENSTOCK_WINDOW_H
#define PENSTOCK_WINDOW_H

#include "files.h"

// The program itself wrote `bytes` at an offset or PENSTOCK_AT_POSITION. Keeps errno.
void penstock_wrote(int fd, int64_t at, size_t bytes);

// The same from inside, of a file that is held.
void penstock_wrote_inside(penstock_file* file, int fd, int64_t at, size_t bytes);

// From inside: the descriptor is the file's last. A large file has reached the storage afterwards.
void penstock_drain_at_close(penstock_file* file, int fd);

// Waits until the storage has what was written to all files that are open.
void penstock_drain_all(void);

// A storage error of an earlier wait that no fsync has reported yet; 0 if none.
int penstock_late_error(int fd);

#endif
