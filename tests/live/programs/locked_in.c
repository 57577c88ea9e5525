// Makes each call in a child that has restricted itself to the system calls which the C library
// makes for it: any other one kills that child. Says how each child ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open
#define SYS_open SYS_openat
#define SYS_creat SYS_openat
#define SYS_dup2 SYS_dup3
#define SYS_newfstatat SYS_fstatat
#define SYS_vfork SYS_clone
#endif
#define MOST 24

static int fd, other;
static FILE* stream;
static char data[8] = "data...";
static struct iovec pieces[2] = {{data, 4}, {data + 4, 4}};

static void* in_thread(void* none) {
  (void)none;
  return (void*)(intptr_t)write(fd, data, 8);
}

static int do_read(void) { return read(fd, data, 8) < 0; }
static int do_write(void) { return write(fd, data, 8) != 8; }
static int do_pread(void) { return pread(fd, data, 8, 0) != 8; }
static int do_pwrite(void) { return pwrite(fd, data, 8, 0) != 8; }
static int do_readv(void) { return readv(fd, pieces, 2) < 0; }
static int do_writev(void) { return writev(fd, pieces, 2) != 8; }
static int do_preadv(void) { return preadv(fd, pieces, 2, 0) != 8; }
static int do_pwritev(void) { return pwritev(fd, pieces, 2, 0) != 8; }
static int do_preadv2(void) { return preadv2(fd, pieces, 2, 0, 0) != 8; }
static int do_pwritev2(void) { return pwritev2(fd, pieces, 2, 0, 0) != 8; }
static int do_fsync(void) { return fsync(fd); }
static int do_fdatasync(void) { return fdatasync(fd); }
static int do_open(void) {
  const int opened = open("locked.in", O_RDONLY);
  return opened < 0 || read(opened, data, 8) != 8;
}
static int do_creat(void) { return creat("locked.new", 0600) < 0; }
static int do_mkstemp(void) {
  char path[] = "locked.XXXXXX";
  return mkstemp(path) < 0;
}
static int do_close(void) { return close(fd) != 0 || close(fd) == 0; }
static int do_close_all(void) {
  for (int k = 3; k < 1024; ++k) close(k);
  return 0;
}
static int do_close_range(void) { return close_range(3, ~0u, 0); }
static int do_dup(void) { return dup(fd) < 0; }
static int do_dup2(void) { return dup2(fd, other) != other || dup2(fd, 900) != 900; }
static int do_dup3(void) { return dup3(fd, other, O_CLOEXEC) != other; }
static int do_dup_and_close(void) {
  const int copy = dup(fd);
  return write(copy, data, 8) != 8 || fsync(copy) != 0 || close(copy) != 0 || close(fd) != 0;
}
static int do_fcntl(void) { return fcntl(fd, F_DUPFD, 20) < 0; }
static int do_lock(void) {
  struct flock lock = {.l_type = F_WRLCK};
  if (fcntl(fd, F_SETLK, &lock) != 0) return 1;
  lock.l_type = F_UNLCK;
  return fcntl(fd, F_SETLK, &lock);
}
static int do_lockf(void) { return lockf(fd, F_TLOCK, 0) || lockf(fd, F_ULOCK, 0); }
static int do_flock(void) { return flock(fd, LOCK_EX) || flock(fd, LOCK_UN); }
static int do_copy_file_range(void) {
  off64_t from = 0;
  return copy_file_range(fd, &from, other, NULL, 8, 0) != 8;
}
static int do_sendfile(void) {
  off_t from = 0;
  return sendfile(other, fd, &from, 8) != 8;
}
static int do_setrlimit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || setrlimit(RLIMIT_FSIZE, &limit);
}
static int do_prctl(void) { return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static int do_syscall(void) { return syscall(SYS_write, fd, data, 8) != 8; }
static int do_puts(void) { return fputs("more", stream) < 0 || fflush(stream) != 0; }
static int do_fclose(void) { return fputs("more", stream) < 0 || fclose(stream) != 0; }
static int do_fopen(void) {
  FILE* opened = fopen("locked.text", "w");
  return opened == NULL || fputs("text", opened) < 0 || fclose(opened) != 0;
}
static int do_fdopen(void) {
  FILE* opened = fdopen(fd, "w");
  return opened == NULL || fputs("text", opened) < 0 || fclose(opened) != 0;
}
static int do_freopen(void) {
  return freopen("locked.text", "w", stream) == NULL || fputs("text", stream) < 0 || fflush(stream);
}
static int do_fork(void) {
  const pid_t child = fork();
  if (child == 0) _exit(write(fd, data, 8) != 8 || close(fd) != 0);
  int status;
  return waitpid(child, &status, 0) != child || status != 0;
}
static int do_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(write(fd, data, 8) != 8);
  int status;
  return waitpid(child, &status, 0) != child || status != 0;
}
static int do_thread(void) {
  pthread_t thread;
  void* written;
  return pthread_create(&thread, NULL, in_thread, NULL) != 0 ||
         pthread_join(thread, &written) != 0 || (intptr_t)written != 8;
}

// Buffers of streams, and their first look at the file.
#define BUFFER SYS_brk, SYS_mmap, SYS_munmap, SYS_fstat, SYS_newfstatat, SYS_lseek
#define CHILD SYS_clone, SYS_clone3, SYS_rt_sigprocmask, SYS_set_robust_list, SYS_wait4

static const struct {
  const char* name;
  int (*does)(void);
  long allowed[MOST];
} rows[] = {
    {"read", do_read, {SYS_read}},
    {"write", do_write, {SYS_write}},
    {"pread", do_pread, {SYS_pread64}},
    {"pwrite", do_pwrite, {SYS_pwrite64}},
    {"readv", do_readv, {SYS_readv}},
    {"writev", do_writev, {SYS_writev}},
    {"preadv", do_preadv, {SYS_preadv}},
    {"pwritev", do_pwritev, {SYS_pwritev}},
    {"preadv2", do_preadv2, {SYS_preadv, SYS_preadv2}},
    {"pwritev2", do_pwritev2, {SYS_pwritev, SYS_pwritev2}},
    {"fsync", do_fsync, {SYS_fsync}},
    {"fdatasync", do_fdatasync, {SYS_fdatasync}},
    {"open", do_open, {SYS_read, SYS_open, SYS_openat}},
    {"creat", do_creat, {SYS_open, SYS_openat, SYS_creat}},
    {"mkstemp", do_mkstemp, {SYS_open, SYS_openat, SYS_getrandom, SYS_clock_gettime}},
    {"close", do_close, {SYS_close}},
    {"close of all", do_close_all, {SYS_close}},
    {"close_range", do_close_range, {SYS_close_range}},
    {"dup", do_dup, {SYS_dup}},
    {"dup2", do_dup2, {SYS_dup2, SYS_dup3}},
    {"dup3", do_dup3, {SYS_dup3}},
    {"dup and close", do_dup_and_close, {SYS_dup, SYS_write, SYS_fsync, SYS_close}},
    {"fcntl", do_fcntl, {SYS_fcntl}},
    {"lock", do_lock, {SYS_fcntl}},
    {"lockf", do_lockf, {SYS_fcntl}},
    {"flock", do_flock, {SYS_flock}},
    {"copy_file_range", do_copy_file_range, {SYS_copy_file_range}},
    {"sendfile", do_sendfile, {SYS_sendfile}},
    {"setrlimit", do_setrlimit, {SYS_prlimit64}},
    {"prctl", do_prctl, {SYS_prctl}},
    {"syscall", do_syscall, {SYS_write}},
    {"fputs", do_puts, {SYS_write, BUFFER}},
    {"fclose", do_fclose, {SYS_write, SYS_close, BUFFER}},
    {"fopen", do_fopen, {SYS_open, SYS_openat, SYS_write, SYS_close, BUFFER}},
    {"fdopen", do_fdopen, {SYS_fcntl, SYS_write, SYS_close, BUFFER}},
    {"freopen", do_freopen, {SYS_open, SYS_openat, SYS_write, SYS_close, SYS_dup3, BUFFER}},
    {"fork", do_fork, {CHILD, SYS_write, SYS_close}},
    {"vfork", do_vfork, {SYS_vfork, CHILD, SYS_write}},
    {"thread",
     do_thread,
     {CHILD, SYS_write, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_futex, SYS_madvise, SYS_rseq,
      SYS_exit, SYS_rt_sigaction, SYS_getrandom, SYS_brk}},
};

static int forbid_others(const long* allowed, const char* way) {
  struct sock_filter filter[2 * MOST + 5];
  struct sock_fprog program = {0, filter};
#define ADD(...) filter[program.len++] = (struct sock_filter)__VA_ARGS__
  ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
  for (int k = 0; k <= MOST; ++k) {
    const long number = k < MOST ? allowed[k] : SYS_exit_group;
    if (k < MOST && k > 0 && number == 0) continue;  // 0 is SYS_read: only as a row's first
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  if (strcmp(way, "raw prctl") == 0)
    return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
  if (strcmp(way, "raw seccomp") == 0)
    return (geteuid() != 0 && syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static void prepare(void) {
  fd = open("locked.in", O_RDWR | O_CREAT | O_TRUNC, 0600);
  other = open("locked.other", O_RDWR | O_CREAT | O_TRUNC, 0600);
  stream = fopen("locked.stream", "w");
  if (fd < 0 || other < 0 || stream == NULL) exit(100);
  if (write(fd, data, 8) != 8 || pwrite(other, data, 8, 0) != 8 || fputs("a", stream) < 0)
    exit(101);
  // What other hosts have must be safe by now: nobody may ask them afterwards.
  if (fsync(fd) != 0 || fsync(other) != 0 || fflush(stream) != 0) exit(102);
}

// Reads, writes and ends: nothing else is allowed.
static void strict(const char* way) {
  prepare();
  if (strcmp(way, "strict") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0
                                 : syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) != 0)
    _exit(103);
  const int failed = write(fd, data, 8) != 8 || read(fd, data, 8) != 0 || fputs("b", stream) < 0 ||
                     fflush(stream) != 0;
  syscall(SYS_exit, failed);
}

static void tell(const char* name, pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child) exit(1);
  printf("%s: %s %d\n", name, WIFSIGNALED(status) ? "killed by" : "returned",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  fflush(stdout);
}

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "prctl";
  if (strstr(way, "strict") != NULL) {
    const pid_t child = fork();
    if (child == 0) strict(way);
    tell(way, child);
    return 0;
  }
  for (size_t k = 0; k < sizeof rows / sizeof *rows; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      prepare();
      if (forbid_others(rows[k].allowed, way) != 0) _exit(103);
      _exit(rows[k].does());
    }
    tell(rows[k].name, child);
  }
  return 0;
}
