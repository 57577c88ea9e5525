// What an I/O node needs of the system: nothing, but for files below managed roots where it carries
// the data of other hosts.

#pragma once

#include <sys/types.h>

#include <vector>

namespace penstock {

// From now on the process has no capability and cannot get one, and is another user if it was root
// and one is named. For a process of one thread: each thread has capabilities of its own. Throws
// std::system_error.
void give_up_privileges(uid_t user, gid_t group);

// From now on the calling thread, and those that it starts, open nothing but files at or below
// these descriptors, and make, remove, rename and execute none, whoever's the process is. False:
// this kernel has no Landlock.
bool confine_thread(const std::vector<int>& to);

}  // namespace penstock
