// Linked statically: no preloaded library sees it.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  char data[65536];
  int fd = open("static.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int k = 0; k < 32; ++k) {
    memset(data, 'a' + k % 26, sizeof data);
    if (write(fd, data, sizeof data) != (ssize_t)sizeof data) return 1;
  }
  return close(fd) != 0;
}
