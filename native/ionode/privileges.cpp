#include "privileges.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace penstock {
namespace {

void check(long result, const char* what) {
  if (result != 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

void give_up_privileges(uid_t user, gid_t group) {
  if (::geteuid() == 0) {
    // Fails where a container took it away before; then there is nothing to take.
    for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
      ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (user != 0) {
      check(::setgroups(0, nullptr), "setgroups");
      check(::setresgid(group, group, group), "setresgid");
      check(::setresuid(user, user, user), "setresuid");
    }
  }
  check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  check(::syscall(SYS_capset, &header, none.data()), "capset");
}

}  // namespace penstock
