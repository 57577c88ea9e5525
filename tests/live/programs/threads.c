// Threads that write blocks of one file through one descriptor, and one that only ever moves on.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, BLOCKS = 64, BLOCK = 16384 };
static int shared, serial;

static void* work(void* argument) {
  const long me = (long)argument;
  char data[BLOCK], back[BLOCK];
  for (long k = 0; k < BLOCKS; ++k) {
    const off_t at = (k * THREADS + me) * BLOCK;
    memset(data, (int)(1 + (me * 31 + k) % 250), BLOCK);
    if (pwrite(shared, data, BLOCK, at) != BLOCK) abort();
    if (pread(shared, back, BLOCK, at) != BLOCK || memcmp(data, back, BLOCK) != 0) abort();
    memset(data, (int)('A' + me), BLOCK);
    if (write(serial, data, BLOCK) != BLOCK)
      abort();  // the position is shared: no block may be lost
  }
  return NULL;
}

int main(void) {
  pthread_t thread[THREADS];
  shared = open("threads.shared", O_RDWR | O_CREAT | O_TRUNC, 0644);
  serial = open("threads.serial", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (long k = 0; k < THREADS; ++k) pthread_create(&thread[k], NULL, work, (void*)k);
  for (int k = 0; k < THREADS; ++k) pthread_join(thread[k], NULL);
  if (fsync(shared) != 0 || close(shared) != 0 || close(serial) != 0) abort();
  return 0;
}
