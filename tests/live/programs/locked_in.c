// Allows itself to read, write and end, and nothing else: any other system call kills it.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  const int fd = open("locked.in", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, "before ", 7) != 7) return 1;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 2;
  const int status = write(fd, "after", 5) == 5 ? 0 : 3;
  syscall(SYS_exit, status);
}
