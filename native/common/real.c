#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

// Newer C libraries have dlsym under a new version too; the old name is in all of them.
#if defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

static struct penstock_real table;
static _Atomic int filled;

// musl has the forms for large files for the linker alone; all of its forms are for large files.
static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  const char* form = strstr(name, "64");
  if (found != NULL || form == NULL) return found;
  char plain[32] = {0};
  memcpy(plain, name, (size_t)(form - name));
  strcpy(plain + (form - name), form + 2);
  return dlsym(RTLD_NEXT, plain);
}

const struct penstock_real* penstock_real(void) {
  // Threads that come here at once write the same addresses.
  if (!atomic_load_explicit(&filled, memory_order_acquire)) {
#define PENSTOCK_FIND(result, name, arguments) *(void**)&table.name = next(#name);
    PENSTOCK_CALLS(PENSTOCK_FIND)
#undef PENSTOCK_FIND
    atomic_store_explicit(&filled, 1, memory_order_release);
  }
  return &table;
}

void* penstock_find(const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); }
