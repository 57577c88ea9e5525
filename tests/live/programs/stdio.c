// C streams: formatted, blocks, seeks, pushback, append, reopening, wide characters.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define CHECK(x)  \
  do {            \
    if (!(x)) {   \
      perror(#x); \
      exit(1);    \
    }             \
  } while (0)

static void blocks(void) {
  static char data[65536];
  FILE* f = fopen("stdio.bin", "wb");
  CHECK(f != NULL && fileno(f) >= 0);
  for (int k = 0; k < 128; ++k) {
    memset(data, 'a' + k % 26, sizeof data);
    CHECK(fwrite(data, 1, sizeof data, f) == sizeof data);
  }
  CHECK(fseek(f, -65536, SEEK_CUR) == 0 && ftell(f) == 127 * 65536L);
  CHECK(fwrite(data, 1, sizeof data, f) == sizeof data && fclose(f) == 0);
  CHECK((f = fopen("stdio.bin", "r+b")) != NULL);
  CHECK(fseek(f, 65536 * 3L, SEEK_SET) == 0 && fgetc(f) == 'd' && ftell(f) == 65536 * 3L + 1);
  CHECK(ungetc('!', f) == '!' && fgetc(f) == '!');
  CHECK(fseek(f, -1, SEEK_END) == 0 && fputc('Z', f) == 'Z' && fflush(f) == 0);
  CHECK(lseek(fileno(f), 0, SEEK_END) == 128 * 65536L && fclose(f) == 0);
}

// For update: seeks from where the stream stands, between writes and reads.
static void update(void) {
  char back[16] = {0};
  FILE* f = fopen("stdio.update", "w+");
  CHECK(f != NULL && fputs("0123456789", f) >= 0);
  CHECK(fseek(f, 4, SEEK_SET) == 0 && fputs("AB", f) >= 0 && fseek(f, -1, SEEK_CUR) == 0 &&
        fputs("X", f) >= 0);
  CHECK(fseek(f, 0, SEEK_CUR) == 0 && fgetc(f) == '6' && ungetc('?', f) == '?' &&
        fseek(f, -2, SEEK_CUR) == 0);
  rewind(f);
  CHECK(fread(back, 1, 10, f) == 10 && strcmp(back, "0123AX6789") == 0 && fclose(f) == 0);
}

static void lines(void) {
  FILE* f = fopen("stdio.txt", "we");
  CHECK(f != NULL && setvbuf(f, NULL, _IOLBF, 256) == 0);
  for (int k = 0; k < 2000; ++k) CHECK(fprintf(f, "line %d\n", k) > 0);
  CHECK(fclose(f) == 0);
  CHECK((f = fopen("stdio.txt", "a")) != NULL && fputs("appended\n", f) >= 0 && fclose(f) == 0);
  CHECK((f = fopen("stdio.txt", "r")) != NULL);
  char line[64];
  int count = 0;
  while (fgets(line, sizeof line, f) != NULL) ++count;
  CHECK(count == 2001 && feof(f) && !ferror(f));
  CHECK(freopen("stdio.again", "w", f) == f && fprintf(f, "again\n") == 6 && fclose(f) == 0);
}

static void wide(void) {
  setlocale(LC_ALL, "C.UTF-8");
  FILE* f = fopen("stdio.wide", "w");
  CHECK(f != NULL && fwide(f, 0) == 0 && fwprintf(f, L"%ls %d\n", L"wei\u00df", 7) == 7 &&
        fwide(f, 0) > 0);
  CHECK(fclose(f) == 0);
  CHECK((f = fopen("stdio.wide", "r")) != NULL);
  wchar_t text[32];
  CHECK(fgetws(text, 32, f) != NULL && wcscmp(text, L"wei\u00df 7\n") == 0 && fclose(f) == 0);
  int fd = dup(1);  // the number of a stream closed unseen must not be taken for its file
  CHECK(fd >= 0 && close(fd) == 0);
}

int main(void) {
  blocks();
  update();
  lines();
  wide();
  CHECK(fopen("missing/file", "r") == NULL);
  CHECK(fopen("stdio.bin", "wx") == NULL);
  puts("done");
  return 0;
}
