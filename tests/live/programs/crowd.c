// As many threads as it is told, alive at once, that write as many blocks of 4 KiB each as it is
// told. Says how many seconds of processor time and of time the writes took.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int calls, fd;
static pthread_barrier_t barrier;

static void* work(void* number) {
  static const char data[4096];
  pthread_barrier_wait(&barrier);
  for (long k = 0; k < calls; ++k) {
    if (pwrite(fd, data, sizeof data, ((long)number * calls + k) % 1000 * 4096) != sizeof data)
      exit(1);
  }
  pthread_barrier_wait(&barrier);
  return NULL;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double processor(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int threads = atoi(arguments[1]);
  calls = atoi(arguments[2]);
  fd = open("crowd.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
  pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 32768);
  for (long k = 0; k < threads; ++k) {
    pthread_t thread;
    if (pthread_create(&thread, &small, work, (void*)k) != 0) return 3;
    pthread_detach(thread);
  }
  const double began = seconds(), used = processor();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  printf("%.3f %.3f\n", processor() - used, seconds() - began);
  return 0;
}
