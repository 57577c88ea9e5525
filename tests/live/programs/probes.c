// Small programs in one: each says what it saw, which must be the same with Penstock as without.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char* what, int fd) {
  char data[65] = {0};
  const long bytes = syscall(SYS_pread64, fd, data, 64, 0L);
  printf("%s: %ld %s\n", what, bytes, data);
}

static int fresh(const char* name) { return open(name, O_RDWR | O_CREAT | O_TRUNC, 0644); }

// A descriptor that was closed past the C library, and is another file's now.
static int raw_close(void) {
  const int kept = fresh("raw.kept");
  const int file = fresh("raw.file");
  write(file, "AAAAAAAAAA", 10);
  syscall(SYS_close, file);
  const int memory = memfd_create("x", 0);
  printf("the same number: %d\n", memory == file);
  write(memory, "BBBBBBBBBB", 10);
  pwrite(memory, "C", 1, 3);
  show("memory", memory);
  syscall(SYS_close, memory);
  const int again = open("raw.file", O_RDONLY);
  show("file", again);
  close(again);
  // Another managed file by another name, in place of the first, with the number of the first.
  write(kept, "kept", 4);
  syscall(SYS_dup3, syscall(SYS_openat, AT_FDCWD, "raw.file", O_RDWR), kept, 0);
  pwrite(kept, "other", 5, 0);
  show("kept number", kept);
  show("kept file", open("raw.kept", O_RDONLY));
  return 0;
}

// All that a program did not open itself, as daemons close it, and sockets of its own after that.
static int raw_close_all(void) {
  const int file = fresh("all.file");
  write(file, "before", 6);
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  const int most = limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int fd = file + 1; fd < most; ++fd) syscall(SYS_close, fd);
  int pairs[400][2];
  for (int k = 0; k < 400; ++k) socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[k]);
  // Where the library had its own.
  for (int k = 0; k < 400; ++k) syscall(SYS_dup2, pairs[k][0], most - most / 4 + k);
  write(file, " after", 6);
  fsync(file);
  if (fork() == 0) {
    for (int k = 0; k < 400; ++k)
      if (fcntl(most - most / 4 + k, F_GETFD) < 0) _exit(2);
    _exit(write(file, " child", 6) != 6);
  }
  int status;
  wait(&status);
  printf("child: %x\n", status);
  show("file", file);
  int heard = 0, alive = 0;
  char data[64];
  for (int k = 0; k < 400; ++k) heard += read(pairs[k][1], data, sizeof data) >= 0;
  for (int k = 0; k < 400; ++k) alive += fcntl(most - most / 4 + k, F_GETFD) >= 0;
  printf("strange words: %d, alive: %d\n", heard, alive);
  return close(file);
}

static int in_vfork(void) {
  const int mine = fresh("vfork.parents"), childs = fresh("vfork.childs");
  write(mine, "parent", 6);
  const pid_t pid = vfork();
  if (pid == 0) {
    dup2(childs, mine);
    write(mine, "child\n", 6);
    close(childs);
    pwrite(mine, "C", 1, 0);
    _exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  write(childs, "still open", 10);
  write(mine, " again", 6);
  show("parent", mine);
  show("child", childs);
  return 0;
}

static int set_user(void) {
  struct stat status;
  const int file = fresh("user.bits");
  fchown(file, 65534, 65534);
  write(file, "root", 4);
  fchmod(file, 06777);
  setresuid(65534, 65534, 65534);
  write(file, "nobody", 6);
  fstat(file, &status);
  printf("mode: %o\n", status.st_mode & 07777);
  return 0;
}

// As servers of files do, for one thread and one request.
static int set_file_user(void) {
  struct stat status;
  const int file = fresh("user.fs");
  fchown(file, 65534, 65534);
  write(file, "root", 4);
  fchmod(file, 06777);
  syscall(SYS_setfsuid, 65534);
  write(file, "nobody", 6);
  fstat(file, &status);
  printf("mode: %o\n", status.st_mode & 07777);
  return 0;
}

static void* writer(void* file) {
  static char data[4096];
  for (;;) pwrite(*(int*)file, data, sizeof data, 0);
}
static void* reader(void* file) {
  static char data[4096];
  for (;;) pread(*(int*)file, data, sizeof data, 0);
}

static int cancelled(void) {
  int file = fresh("cancelled");
  void* (*const bodies[])(void*) = {writer, reader};
  for (int k = 0; k < 20; ++k) {
    pthread_t thread;
    void* result;
    pthread_create(&thread, NULL, bodies[k % 2], &file);
    usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 1;
  }
  printf("cancelled\n");
  return write(file, "works", 5) != 5;
}

// A program that its writer leaves open when it ends, and that runs at once.
static int run_written(int close_first) {
  int refused = 0;
  for (int k = 0; k < 30; ++k) {
    if (fork() == 0) {
      const int file = open("busy.sh", O_RDWR | O_CREAT | O_TRUNC, 0755);
      if (write(file, "#!/bin/true\n", 12) != 12) _exit(1);
      if (close_first && close(file) != 0) _exit(2);
      _exit(0);
    }
    wait(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
      execl("./busy.sh", "busy.sh", (char*)NULL);
      _exit(errno == ETXTBSY ? 7 : 8);
    }
    int status;
    waitpid(pid, &status, 0);
    refused += WEXITSTATUS(status) == 7;
  }
  printf("refused: %d\n", refused);
  return 0;
}

static int busy_text(void) { return run_written(0); }
static int closed_text(void) { return run_written(1); }

static int lease(void) {
  const int file = fresh("lease");
  write(file, "data", 4);
  printf("lease: %d\n", fcntl(file, F_SETLEASE, F_WRLCK));
  return 0;
}

static volatile int done;
static void* read_all(void* file) {
  static char data[65536];
  for (int k = 0; k < 3000; ++k) {
    lseek(*(int*)file, 0, SEEK_SET);
    read(*(int*)file, data, sizeof data);
  }
  done = 1;
  return NULL;
}
static int position(void) {
  char data[1000] = {0};
  int file = fresh("position");
  write(file, data, sizeof data);
  pthread_t thread;
  pthread_create(&thread, NULL, read_all, &file);
  int beyond = 0;
  while (!done) beyond += lseek(file, 0, SEEK_CUR) > (off_t)sizeof data;
  pthread_join(thread, NULL);
  printf("beyond the end: %d\n", beyond > 0);
  return 0;
}

static int wrong_range(void) {
  const int result = close_range(4, 3, 0);
  printf("close_range: %d %s\n", result, strerror(errno));
  return 0;
}

// A list that cannot be read, with a mode that is refused; and one that has nothing to do.
static int wrong_list(void) {
  const int refused = lio_listio(99, (struct aiocb* const*)16, 3, NULL);
  printf("refused: %d %s\n", refused, strerror(errno));
  struct aiocb nothing = {.aio_fildes = fresh("list.file"), .aio_lio_opcode = LIO_NOP};
  nothing.aio_nbytes = 1 << 20;
  struct aiocb* const list[] = {NULL, &nothing};
  printf("nothing: %d\n", lio_listio(LIO_WAIT, list, 2, NULL));
  return 0;
}

static int exit_file;
static void write_at_exit(void) { write(exit_file, " handler", 8); }
__attribute__((destructor)) static void write_at_the_very_end(void) {
  if (exit_file > 0) write(exit_file, " destructor", 11);
}

// Handlers of exit, and a stream that only exit writes out, while a thread goes on.
static int at_exit(void) {
  static int file;
  exit_file = fresh("exit.file");
  file = fresh("exit.other");
  FILE* stream = fopen("exit.stream", "w");
  atexit(write_at_exit);
  pthread_t thread;
  pthread_create(&thread, NULL, writer, &file);
  write(exit_file, "main", 4);
  fprintf(stream, "never closed");
  return 0;
}

static int after_exit(void) {
  show("file", open("exit.file", O_RDONLY));
  show("stream", open("exit.stream", O_RDONLY));
  return 0;
}

// Becomes itself again, with threads in their calls.
static int exec_again(void) {
  static int file, other;
  char number[16];
  other = fresh("exec.other");
  if (getenv("PROBE_FILE") != NULL) {
    file = atoi(getenv("PROBE_FILE"));
    write(file, " after", 6);
    show("file", file);
    return 0;
  }
  file = fresh("exec.file");
  pthread_t threads[4];
  for (int k = 0; k < 4; ++k) pthread_create(&threads[k], NULL, k % 2 ? writer : reader, &other);
  write(file, "before", 6);
  usleep(2000);
  snprintf(number, sizeof number, "%d", file);
  setenv("PROBE_FILE", number, 1);
  execl("/proc/self/exe", "probes", "exec", (char*)NULL);
  return 1;
}

// The library takes one or a few descriptors of those that a program may have.
static int descriptors(void) {
  const int file = fresh("descriptors");
  write(file, "data", 4);
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) ++opened;
  printf("opened: %d\n", opened);
  const int result = (int)write(file, "more", 4);
  printf("write: %d\n", result);
  show("file", file);
  return 0;
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    int (*run)(void);
  } probes[] = {
      {"raw close", raw_close},    {"raw close of all", raw_close_all}, {"vfork", in_vfork},
      {"set user", set_user},      {"set file user", set_file_user},    {"cancelled", cancelled},
      {"busy text", busy_text},    {"closed text", closed_text},        {"lease", lease},
      {"position", position},      {"wrong range", wrong_range},        {"wrong list", wrong_list},
      {"at exit", at_exit},        {"after exit", after_exit},          {"exec", exec_again},
      {"descriptors", descriptors}};
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t k = 0; count > 1 && k < sizeof probes / sizeof *probes; ++k)
    if (strcmp(probes[k].name, arguments[1]) == 0) return probes[k].run();
  return 9;
}
