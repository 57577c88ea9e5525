// Threads write lines to a log that another thread puts new files under, as log rotation does:
// every line is in one of the files, and no file has a hole.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, LINE = 64, ROTATIONS = 200 };
static int output;
static _Atomic int ended;
static _Atomic long written;

static void* work(void* argument) {
  char line[LINE];
  memset(line, 'a' + (int)(long)argument, LINE);
  while (!ended) {
    if (write(output, line, LINE) != LINE) abort();
    ++written;
  }
  return NULL;
}

static int open_log(int k) {
  char name[32];
  snprintf(name, sizeof name, "log.%d", k);
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) abort();
  return fd;
}

int main(void) {
  pthread_t thread[THREADS];
  output = open_log(0);
  for (long k = 0; k < THREADS; ++k) pthread_create(&thread[k], NULL, work, (void*)k);
  for (int k = 1; k <= ROTATIONS; ++k) {
    usleep(500);
    const int next = open_log(k);
    if (dup2(next, output) != output || close(next) != 0) abort();
  }
  ended = 1;
  for (int k = 0; k < THREADS; ++k) pthread_join(thread[k], NULL);
  printf("%ld\n", (long)written * LINE);
  return 0;
}
