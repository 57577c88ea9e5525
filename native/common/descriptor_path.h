// Where the kernel shows a descriptor's file. Without the C library's formatting: the preload
// libraries ask in the midst of any call, also in a vfork child.

#ifndef PENSTOCK_DESCRIPTOR_PATH_H
#define PENSTOCK_DESCRIPTOR_PATH_H

#include <stddef.h>
#include <string.h>

#define PENSTOCK_DESCRIPTOR_PATH 32

static inline void penstock_descriptor_below(const char* folder, int fd,
                                             char path[PENSTOCK_DESCRIPTOR_PATH]) {
  strcpy(path, folder);
  char digits[12];
  size_t n = 0;
  for (int rest = fd; rest > 0 || n == 0; rest /= 10) digits[n++] = (char)('0' + rest % 10);
  size_t at = strlen(path);
  while (n > 0) path[at++] = digits[--n];
  path[at] = '\0';
}

static inline void penstock_descriptor_path(int fd, char path[PENSTOCK_DESCRIPTOR_PATH]) {
  penstock_descriptor_below("/proc/self/fd/", fd, path);
}

// The kernel's information on a descriptor, including its locks.
static inline void penstock_descriptor_info(int fd, char path[PENSTOCK_DESCRIPTOR_PATH]) {
  penstock_descriptor_below("/proc/self/fdinfo/", fd, path);
}

#endif
