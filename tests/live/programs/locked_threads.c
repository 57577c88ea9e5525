// Threads write, by one call each that the C library makes; meanwhile main restricts them all
// (TSYNC) to this call and what threads themselves need: any other kills the program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static char data[65536];
static _Atomic int started;

static void* writes(void* positioned) {
  for (long k = 0;; ++k) {
    if (positioned != NULL)
      pwrite(fd, data, sizeof data, (k % 16) * (long)sizeof data);
    else
      write(fd, data, 4096);
    if (k == 0) ++started;
  }
  return NULL;
}

static const unsigned allowed[] = {SYS_write, SYS_pwrite64, SYS_exit_group, SYS_clock_nanosleep,
                                   SYS_nanosleep};
enum { COUNT = sizeof allowed / sizeof *allowed };

int main(int count, char** arguments) {
  if (count < 3) return 100;
  fd = open("threads", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int threads = atoi(arguments[1]);
  for (int k = 0; k < threads; ++k) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, writes, k % 4 == 0 ? NULL : data) != 0) return 101;
  }
  while (started < threads) usleep(1000);
  usleep((useconds_t)atoi(arguments[2]));
  struct sock_filter filter[2 * COUNT + 2];
  struct sock_fprog program = {0, filter};
#define ADD(...) filter[program.len++] = (struct sock_filter)__VA_ARGS__
  ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
  for (int k = 0; k < COUNT; ++k) {
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[k], 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return 102;
  usleep(200000);
  _exit(0);
}
