// What the library knows in this process: its pages, and which descriptors are managed.

#ifndef PENSTOCK_STATE_H
#define PENSTOCK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "page.h"

// A file under a managed root; anything else is none of our business.
bool penstock_managed(int fd);

// A descriptor was opened, copied, or closed.
void penstock_opened(int fd, int flags);
void penstock_copied(int from, int to);
void penstock_closed(int fd);
void penstock_closed_from(unsigned first, unsigned last);

// The process took a lock: from now on it never waits at the gate, or others would wait for it.
void penstock_locked(void);

// A data call of `bytes` bytes begins (waits at the gate), and ends having moved `result`.
void penstock_begin(size_t bytes);
enum penstock_kind { PENSTOCK_READ, PENSTOCK_WRITE, PENSTOCK_SYNC, PENSTOCK_LEFT };
void penstock_end(enum penstock_kind kind, ssize_t result);

#endif
