// A stream of ours is a cookie stream around the native one that the C library opened: it reads and
// writes through the calls, and the native one lends it its descriptor's number and what it needs
// to become wide. A stream that turns wide is then a native one, and direct. This takes glibc's
// kind of stream: under musl they all stay as they are.

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "streams.h"
#include "compat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "process.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))

extern const char* gnu_get_libc_version(void) __attribute__((weak));

static int number_of(FILE* stream) {
  const int error = errno;
  const int fd = fileno(stream);
  errno = error;
  return fd;
}

typedef struct {
  FILE* native;
  int fd;
  bool lent;  // the native one belongs to the program, or to a stream that outlived us
} cookie;

static ssize_t read_cookie(void* of, char* data, size_t bytes) {
  return read(((cookie*)of)->fd, data, bytes);
}

// A stream takes anything but all for an error, and 0 as what tells it so.
static ssize_t write_cookie(void* of, const char* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = write(((cookie*)of)->fd, data + done, bytes - done);
    if (written <= 0) break;
    done += (size_t)written;
  }
  return (ssize_t)done;
}

static int seek_cookie(void* of, off64_t* at, int whence) {
  const off64_t position = lseek64(((cookie*)of)->fd, *at, whence);
  if (position < 0) return -1;
  *at = position;
  return 0;
}

static int close_native(FILE* native, int fd) {
  penstock_file* file = penstock_closing(fd);
  const int result = penstock_real()->fclose(native);
  if (file == NULL) return result;
  const int error = errno;
  const int theirs = penstock_release(file);
  errno = error;
  return penstock_outcome(result, theirs);  // EOF is -1
}

static int close_cookie(void* of) {
  cookie* mine = of;
  const int result = mine->lent ? close(mine->fd) : close_native(mine->native, mine->fd);
  const int error = errno;
  free(mine);
  errno = error;
  return result;
}

static FILE* around(FILE* native, const char* mode, bool lent) {
  cookie* mine = malloc(sizeof *mine);
  if (mine == NULL) return NULL;
  *mine = (cookie){native, native->_fileno, lent};
  const char plain[] = {mode[0], '\0'};
  const cookie_io_functions_t calls = {read_cookie, write_cookie, seek_cookie, close_cookie};
  FILE* stream = fopencookie(mine, plain, calls);
  if (stream == NULL) {
    free(mine);
    return NULL;
  }
  stream->_fileno = native->_fileno;
  stream->_wide_data = native->_wide_data;
  stream->_mode = 0;
  return stream;
}

// One that converts characters, or cannot be wrapped, stays as the C library made it. So does one
// for update: over a cookie, the C library loses its place when it seeks between a write and a
// read.
static FILE* ours(FILE* native, const char* mode) {
  if (native == NULL || gnu_get_libc_version == NULL || !penstock_managed(native->_fileno) ||
      strpbrk(mode, "+,") != NULL)
    return native;
  const int error = errno;
  FILE* stream = around(native, mode, false);
  errno = error;
  return stream != NULL ? stream : native;
}

#define FOPEN(name)                                         \
  EXPORT FILE* name(const char* path, const char* mode) {   \
    FILE* native = penstock_real()->name(path, mode);       \
    if (native != NULL) penstock_opened(number_of(native)); \
    return ours(native, mode);                              \
  }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT FILE* fdopen(int fd, const char* mode) {
  return ours(penstock_real()->fdopen(fd, mode), mode);
}

// It turns any stream into a native one, in place, and direct. A cookie and its lender stay behind.
#define FREOPEN(name)                                                   \
  EXPORT FILE* name(const char* path, const char* mode, FILE* stream) { \
    const int fd = number_of(stream);                                   \
    penstock_file* file = penstock_hold(fd);                            \
    FILE* native = penstock_real()->name(path, mode, stream);           \
    const int error = errno;                                            \
    if (file != NULL) penstock_closed_unseen(fd, file);                 \
    if (native != NULL) penstock_opened(number_of(native));             \
    errno = error;                                                      \
    return native;                                                      \
  }
FREOPEN(freopen)
FREOPEN(freopen64)

// Of a native stream, or one that became so, the C library closes the descriptor unseen.
EXPORT int fclose(FILE* stream) {
  const int fd = number_of(stream);
  penstock_file* file = penstock_hold(fd);
  const int result = penstock_real()->fclose(stream);
  if (file == NULL) return result;
  const int error = errno;
  const int theirs = penstock_closed_unseen(fd, file);
  errno = error;
  return penstock_outcome(result, theirs);  // EOF is -1
}

static bool redirected;

// Buffered as the native one is: another library, or the program's user, may have chosen that.
static void replace_output(void) {
  const int flags = stdout->_flags;
  const int buffering = (flags & IO_UNBUFFERED) != 0 ? _IONBF
                        : (flags & IO_LINE_BUF) != 0 ? _IOLBF
                                                     : _IOFBF;
  FILE* stream = __fpending(stdout) == 0 ? around(stdout, "w", true) : NULL;
  if (stream == NULL) return;
  setvbuf(stream, NULL, buffering, BUFSIZ);
  stdout = stream;
  redirected = true;
}

void penstock_streams_start(void) {
  // Where C++ is about, std::cout may have taken the native stream already: the two would mix up
  // their order.
  if (gnu_get_libc_version != NULL && penstock_managed(STDOUT_FILENO) &&
      penstock_find("_ZSt4cout") == NULL)
    replace_output();
}

// Shells redirect themselves for what they do without another process. Other programs may have kept
// the old stream somewhere.
void penstock_streams_redirected(void) {
  const char* name = program_invocation_short_name;
  if (redirected || gnu_get_libc_version == NULL || !penstock_managed(STDOUT_FILENO) ||
      penstock_is_other_process() || penstock_retired())
    return;
  if (strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0) replace_output();
}
