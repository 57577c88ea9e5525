// Another library that stands in front of the same calls, as Darshan does: counts bytes, and tells.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t written;

ssize_t write(int fd, const void* data, size_t bytes) {
  ssize_t (*next)(int, const void*, size_t) =
      (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  const ssize_t result = next(fd, data, bytes);
  if (result > 0) written += (size_t)result;
  return result;
}

__attribute__((destructor)) static void tell(void) {
  char text[32];
  const int fd = open(getenv("OTHER_PRELOAD"), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int length = snprintf(text, sizeof text, "%zu\n", written);
  if (fd >= 0) dprintf(fd, "%.*s", length, text);
}
