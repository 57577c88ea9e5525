// Threads that are cancelled during their I/O; the others continue.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int data;

static void* work(void* argument) {
  for (;;) {
    if (pwrite(data, "x", 1, (off_t)(long)argument) != 1) abort();
    pthread_testcancel();
  }
  return NULL;
}

int main(void) {
  data = open("cancel.data", O_RDWR | O_CREAT, 0644);
  for (int round = 0; round < 10; ++round) {
    pthread_t thread[4];
    for (long k = 0; k < 4; ++k) pthread_create(&thread[k], NULL, work, (void*)k);
    usleep(5000);
    for (int k = 0; k < 4; ++k) pthread_cancel(thread[k]);
    for (int k = 0; k < 4; ++k) {
      void* result;
      pthread_join(thread[k], &result);
      if (result != PTHREAD_CANCELED) abort();
    }
  }
  if (pwrite(data, "end", 3, 4) != 3 || close(data) != 0) abort();
  puts("went on");
  return 0;
}
