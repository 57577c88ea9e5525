// A handler that does I/O of its own repeatedly, during the I/O of the program.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static int data, file_log;

static void handler(int number) {
  (void)number;
  const int fd = open("signals.other", O_RDWR | O_CREAT, 0644);
  if (write(file_log, ".", 1) != 1 || pwrite(data, "   0", 4, 0) != 4 || close(fd) != 0) abort();
}

int main(void) {
  data = open("signals.data", O_RDWR | O_CREAT, 0644);
  file_log = open("signals.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  signal(SIGALRM, handler);
  const struct itimerval often = {{0, 5000}, {0, 1300}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int k = 0; k < 200; ++k) {
    char text[8];
    snprintf(text, sizeof text, "%4d", k);
    if (write(data, text, 4) != 4) abort();
  }
  setitimer(ITIMER_REAL, &never, NULL);
  return fsync(data) != 0 || close(data) != 0;
}
