// Writes and syncs after PR_SET_NO_NEW_PRIVS, then after seccomp; says what fsync returned.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char data[1 << 16];

static void sync_twice(int fd, const char* after) {
  for (int k = 0; k < 2; ++k)
    printf("after %s: %s\n", after, fsync(fd) == 0 ? "0" : strerror(errno));
}

int main(int count, char** arguments) {
  (void)arguments;
  const int fd = open("private", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (write(fd, data, sizeof data) != sizeof data) return 100;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 101;
  sync_twice(fd, "no_new_privs");
  if (write(fd, data, sizeof data) != sizeof data) return 102;
  if (count > 1) {  // the I/O node goes
    puts("ready");
    fflush(stdout);
    getchar();
  }
  struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {1, all};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 103;
  sync_twice(fd, "seccomp");
  return 0;
}
