#include "privileges.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace penstock {
namespace {

// Of linux/landlock.h, which the headers of many build hosts lack. The numbers are the same on all
// architectures of ours.
constexpr long landlock_create_ruleset = 444;
constexpr long landlock_add_rule = 445;
constexpr long landlock_restrict_self = 446;
constexpr unsigned landlock_version = 1;  // a flag
constexpr int landlock_path_beneath = 1;
constexpr std::uint64_t write_file = 1 << 1;
constexpr std::uint64_t read_file = 1 << 2;
constexpr std::uint64_t read_folder = 1 << 3;  // of directories alone
constexpr std::uint64_t all_of_version_1 = (1 << 13) - 1;
constexpr std::uint64_t refer = 1 << 13;      // version 2
constexpr std::uint64_t truncate = 1 << 14;   // version 3
constexpr std::uint64_t ioctl_dev = 1 << 15;  // version 5

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

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

bool confine_thread(const std::vector<int>& to) {
  const long version = ::syscall(landlock_create_ruleset, nullptr, 0, landlock_version);
  if (version < 1) return false;
  std::uint64_t handled = all_of_version_1;
  if (version >= 2) handled |= refer;
  if (version >= 3) handled |= truncate;
  if (version >= 5) handled |= ioctl_dev;
  const int rules =
      static_cast<int>(::syscall(landlock_create_ruleset, &handled, sizeof handled, 0));
  if (rules < 0) return false;
  bool confined = true;
  for (const int descriptor : to) {
    struct stat is{};
    ::fstat(descriptor, &is);
    const std::uint64_t folder = S_ISDIR(is.st_mode) ? read_folder : 0;
    const PathBeneath below{write_file | read_file | folder, descriptor};
    confined =
        confined && ::syscall(landlock_add_rule, rules, landlock_path_beneath, &below, 0) == 0;
  }
  confined = confined && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
             ::syscall(landlock_restrict_self, rules, 0) == 0;
  ::close(rules);
  return confined;
}

}  // namespace penstock
