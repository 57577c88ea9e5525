// Calls of more bytes than the kernel moves at once, up to absurd ones, on a buffer that ends
// before memory which cannot be accessed. Says what each returns.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER 16384

static void tell(const char* call, size_t count, ssize_t result) {
  printf("%s of %zx: %zd %s\n", call, count, result, result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

int main(void) {
  static const size_t counts[] = {
      4096, 0x7ffff000, 0x7ffff001, (size_t)1 << 32, (size_t)1 << 46, (size_t)1 << 62, SIZE_MAX};
  char* data = mmap(NULL, 2 * BUFFER, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(data, BUFFER, PROT_READ | PROT_WRITE) != 0) return 1;
  memset(data, 'd', BUFFER);
  const int fd = open("counts.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (pwrite(fd, data, 8192, 0) != 8192) return 2;
  for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
    const size_t count = counts[k];
    const struct iovec pieces[2] = {{data, 4096}, {data + 4096, count}};
    tell("pread", count, pread(fd, data, count, 0));
    tell("pread beyond", count, pread(fd, data, count, 1 << 20));
    tell("pwrite", count, pwrite(fd, data, count, 100));
    tell("preadv", count, preadv(fd, pieces, 2, 0));
    tell("pwritev", count, pwritev(fd, pieces, 2, 0));
    lseek(fd, 0, SEEK_SET);
    tell("read", count, read(fd, data, count));
    lseek(fd, 0, SEEK_SET);
    tell("write", count, write(fd, data, count));
    printf("at %ld\n", (long)lseek(fd, 0, SEEK_CUR));
  }
  return 0;
}
