// All that interrupts a program at once, for as many seconds as it is told: timers and SIGCHLD
// whose handlers write, threads that read back what they wrote and are cancelled, fork (also in a
// handler), vfork, and jumps out of handlers. Ends with 1 and a line where a byte is wrong.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define BLOCK 8192
#define BLOCKS 32

enum { TICKS, REAPED, FORKS, FORKS_IN_HANDLERS, VFORKS, CANCELLED, JUMPS, BLOCKS_CHECKED, COUNTS };
static const char* const names[COUNTS] = {"ticks",  "reaped",    "forks", "forks_in_handlers",
                                          "vforks", "cancelled", "jumps", "blocks"};
static _Atomic long counts[COUNTS];
static _Atomic int stop;
static int file_log, scratch, program_pid;
static __thread volatile sig_atomic_t may_fork, may_jump, is_child;
static __thread sigjmp_buf back;

static void fail(const char* what) {
  char line[128];
  const int length = snprintf(line, sizeof line, "%s: %s\n", what, strerror(errno));
  syscall(SYS_write, 2, line, length);
  syscall(SYS_exit_group, 1);
}

static void count(int which) { atomic_fetch_add(&counts[which], 1); }

static void note(char letter) {
  char record[16];
  memset(record, letter, sizeof record - 1);
  record[sizeof record - 1] = '\n';
  if (write(file_log, record, sizeof record) != sizeof record) fail("log");
}

static void tick(int number) {
  (void)number;
  const int error = errno;
  static _Atomic unsigned turn;
  const unsigned k = atomic_fetch_add(&turn, 1);
  if (getpid() != program_pid) return;
  count(TICKS);
  note('t');
  char data[64];
  memset(data, 'a' + k % 26, sizeof data);
  if (pwrite(scratch, data, sizeof data, 4096 * (k % 16)) != sizeof data) fail("scratch");
  if (k % 8 == 0) {
    const int fd = open("stress.opened", O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, data, 8) != 8 || close(fd) != 0) fail("opened in a handler");
  }
  if (k % 4 == 1 && may_fork) {
    const pid_t pid = fork();
    if (pid < 0) fail("fork in a handler");
    if (pid == 0) is_child = 1;  // and the call that was interrupted goes on in it
    if (pid > 0) count(FORKS_IN_HANDLERS);
  }
  errno = error;
  if (k % 16 == 9 && may_jump) {
    may_jump = 0;
    count(JUMPS);
    siglongjmp(back, 1);
  }
}

static void child_ended(int number) {
  (void)number;
  const int error = errno;
  int status;
  while (getpid() == program_pid && waitpid(-1, &status, WNOHANG) > 0) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "a child ended with status %x\n", status);
      syscall(SYS_exit_group, 1);
    }
    count(REAPED);
    note('c');
  }
  errno = error;
}

static void check(int fd, unsigned k, char letter) {
  static __thread char wrote[BLOCK], read_back[BLOCK];
  memset(wrote, letter, sizeof wrote);
  const off_t at = (off_t)BLOCK * (k % BLOCKS);
  if (pwrite(fd, wrote, BLOCK, at) != BLOCK) fail("pwrite");
  if (pread(fd, read_back, BLOCK, at) != BLOCK) fail("pread");
  if (memcmp(wrote, read_back, BLOCK) != 0) fail("a block is not what was written");
}

static void* worker(void* argument) {
  const int me = (int)(long)argument;
  char name[32];
  snprintf(name, sizeof name, "stress.%d", me);
  int fd = open(name, O_RDWR | O_CREAT, 0644);
  const int same = open("stress.same", O_RDWR | O_CREAT, 0644);
  for (unsigned k = 0; !atomic_load(&stop); ++k) {
    check(fd, k, (char)('A' + (k + me) % 26));
    may_fork = 1;
    check(same, 0, 'S');  // a child made in its middle writes it too, whenever that comes to run
    may_fork = 0;
    if (is_child) syscall(SYS_exit_group, 0);
    count(BLOCKS_CHECKED);
    if (k % 64 == 5 && fsync(fd) != 0) fail("fsync");
    if (k % 32 == 7) {
      const int copy = dup(fd);
      if (copy < 0 || dup2(copy, fd) != fd || close(copy) != 0) fail("dup and dup2");
    }
    if (k % 100 == 11) {
      if (close(fd) != 0) fail("close");
      fd = open(name, O_RDWR);
      if (fd < 0) fail("open");
    }
  }
  close(same);
  close(fd);
  return NULL;
}

// Jumps out of its calls, as programs do that limit a call's time.
static void* jumper(void* argument) {
  (void)argument;
  const int fd = open("stress.jumped", O_RDWR | O_CREAT, 0644);
  static char data[BLOCK];
  while (!atomic_load(&stop)) {
    if (sigsetjmp(back, 1) == 0) {
      may_jump = 1;
      for (int k = 0; k < 64; ++k) {
        if (pwrite(fd, data, BLOCK, (off_t)BLOCK * k) != BLOCK) fail("jumper");
      }
    }
    may_jump = 0;
  }
  close(fd);
  return NULL;
}

static void* endless(void* argument) {
  const int fd = *(int*)argument;
  static char data[4096];
  while (pwrite(fd, data, sizeof data, 0) == sizeof data) continue;
  fail("endless");
  return NULL;
}

// Without the others' signals: the C library waits for itself where a handler's call is cancelled.
static void cancel_one(void) {
  static int fd = -1;
  sigset_t all, before;
  if (fd < 0) fd = open("stress.endless", O_RDWR | O_CREAT, 0644);
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, endless, &fd) != 0) fail("pthread_create");
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  usleep(300);
  pthread_cancel(thread);
  void* result;
  pthread_join(thread, &result);
  if (result != PTHREAD_CANCELED) fail("not cancelled");
  count(CANCELLED);
}

static void fork_one(unsigned k) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid > 0) {
    count(FORKS);
    return;
  }
  char name[32];
  snprintf(name, sizeof name, "stress.child%u", k % 8);
  const int fd = open(name, O_RDWR | O_CREAT, 0644);
  for (unsigned j = 0; j < 4; ++j) check(fd, k % BLOCKS, 'x');
  if (k % 4 == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(2);
  }
  _exit(close(fd) != 0);
}

// The child redirects, writes and ends, or becomes another program.
static void vfork_one(unsigned k) {
  static int mine = -1, childs = -1;
  if (mine < 0) {
    mine = open("stress.parents", O_RDWR | O_CREAT, 0644);
    childs = open("stress.vforked", O_RDWR | O_CREAT | O_APPEND, 0644);
    if (write(mine, "parent", 6) != 6) fail("parents");
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) {
    dup2(childs, mine);
    if (write(mine, "child\n", 6) != 6) _exit(3);
    if (k % 2 == 0) execl("/bin/true", "true", (char*)NULL);
    _exit(0);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (pid < 0) fail("vfork");
  count(VFORKS);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void handle(int number, void (*with)(int)) {
  struct sigaction action = {.sa_handler = with, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
}

int main(int count_of, char** arguments) {
  const double until = now() + (count_of > 1 ? atof(arguments[1]) : 1.0);
  const struct itimerval often = {{0, 1700}, {0, 1700}}, never = {{0, 0}, {0, 0}};
  program_pid = getpid();
  file_log = open("stress.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  scratch = open("stress.scratch", O_RDWR | O_CREAT, 0644);
  handle(SIGALRM, tick);
  handle(SIGCHLD, child_ended);
  pthread_t threads[THREADS + 1];
  for (long k = 0; k < THREADS; ++k) pthread_create(&threads[k], NULL, worker, (void*)k);
  pthread_create(&threads[THREADS], NULL, jumper, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  for (unsigned k = 0; now() < until; ++k) {
    fork_one(k);
    vfork_one(k);
    cancel_one();
    // The timer's signal goes to whichever thread has it open: sometimes not this one.
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    if (k % 2 == 0) pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    usleep(10000);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  atomic_store(&stop, 1);
  for (int k = 0; k <= THREADS; ++k) pthread_join(threads[k], NULL);
  handle(SIGCHLD, SIG_DFL);
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
    if (pid <= 0) continue;
    if (status != 0) fail("a child's status");
    count(REAPED);
  }
  for (int k = 0; k < COUNTS; ++k) printf("%s %ld\n", names[k], counts[k]);
  return 0;
}
