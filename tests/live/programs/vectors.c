// Vectors and counts that the kernel refuses, memory that is not there, and ranges of descriptors:
// prints what each call returned.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static void tell(const char* call, long result) {
  printf("%s: %ld %s\n", call, result, result < 0 ? strerror(errno) : "");
  fflush(stdout);
}
#define TELL(call) tell(#call, (long)(call))

int main(void) {
  const long page = sysconf(_SC_PAGESIZE);
  char data[64] = "0123456789";
  const int fd = open("vectors.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
  TELL(write(fd, data, sizeof data));
  TELL(lseek(fd, 0, SEEK_SET));
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + page, page);
  struct iovec* last = (struct iovec*)(pages + page) - 1;  // before a page that is not there
  *last = (struct iovec){data, 10};
  struct iovec* bad = (struct iovec*)8;
  const struct iovec holed[2] = {{data, 5}, {pages + page, 5}};
  const struct iovec huge[2] = {{data, SSIZE_MAX}, {data, 5}};
  TELL(writev(fd, bad, 1));
  TELL(readv(fd, bad, 1));
  TELL(readv(fd, NULL, 1));
  TELL(writev(fd, NULL, 0));
  TELL(readv(fd, last, 1));
  TELL(writev(fd, last, 1));
  TELL(readv(fd, last, 2));
  TELL(writev(fd, last, 2));
  TELL(readv(fd, last, 1025));
  TELL(writev(fd, last, INT_MAX));
  TELL(writev(fd, last, -1));
  TELL(pwritev(fd, holed, 2, 0));
  TELL(preadv(fd, holed, 2, 0));
  TELL(pwritev(fd, huge, 2, 0));
  TELL(preadv(fd, bad, 1, 0));
  TELL(preadv(fd, last, 1, -5));
  TELL(pwritev(fd, last, 1025, 0));
  TELL(preadv2(fd, bad, 1, -1, 0));
  TELL(preadv2(fd, last, INT_MIN, -1, 0));
  TELL(pwritev2(fd, bad, 1, 0, 0));
  TELL(pwritev2(fd, last, 1, 0, 1 << 30));
  TELL(pread(fd, (void*)8, 10, 0));
  TELL(pwrite(fd, pages + page - 5, 10, 0));
  TELL(lseek(fd, 0, SEEK_CUR));
  TELL(close_range(4000, 3999, 0));
  TELL(close_range(fd, fd, 1 << 20));
  TELL(write(fd, data, 5));
  TELL(close_range(fd, UINT_MAX, 0));
  TELL(write(fd, data, 5));
  return 0;
}
