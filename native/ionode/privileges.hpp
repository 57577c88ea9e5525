// What an I/O node needs of the system: nothing.

#pragma once

#include <sys/types.h>

namespace penstock {

// From now on the process has no capability and cannot get one, and is another user if it was root
// and one is named. For a process of one thread: each thread has capabilities of its own. Throws
// std::system_error.
void give_up_privileges(uid_t user, gid_t group);

}  // namespace penstock
