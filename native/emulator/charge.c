#define _GNU_SOURCE
#include "charge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "descriptor_path.h"
#include "emulation.h"
#include "real.h"

#if defined(PENSTOCK_ABOVE_THE_CLIENT)
#define CHARGES_TARGETS 0
#else
#define CHARGES_TARGETS 1
#endif
#define SECOND UINT64_C(1000000000)
#define UNIT_BITS 6  // 64 ns
#define STREAM_BITS 16
// A thread later than this was stopped, or its disk cannot keep up.
#define MOST_LATENESS SECOND

static penstock_emulation* _Atomic emulation;
static penstock_busy* link_word;
static uint64_t link_rate;
static __thread uint64_t lateness;
static __thread bool precise;

static penstock_emulation* active(void) {
  return atomic_load_explicit(&emulation, memory_order_acquire);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static bool is_regular(int fd, uint64_t* inode) {
  // By number: the C library's fstat has another version in every release.
  struct stat status;
#if defined(SYS_fstat)
  if (syscall(SYS_fstat, fd, &status) != 0) return false;
#else
  if (syscall(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH) != 0) return false;
#endif
  *inode = (uint64_t)status.st_ino;
  return S_ISREG(status.st_mode);
}

static bool lies_under_the_root(const penstock_emulation* e, int fd) {
  char link[PENSTOCK_DESCRIPTOR_PATH];
  penstock_descriptor_path(fd, link);
  char path[PATH_MAX];
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  return length > (long)e->root_length && memcmp(path, e->root, e->root_length) == 0 &&
         path[e->root_length] == '/';
}

// Read again at every call: a few microseconds are little to an emulated request, and there is no
// table of descriptors that a vfork, a raw system call or another thread could make wrong.
struct penstock_file penstock_look_at(int fd) {
  struct penstock_file file = {false, 0};
  const penstock_emulation* e = active();
  if (e == NULL || fd < 0) return file;
  const int error = errno;
  file.charged = is_regular(fd, &file.inode) && lies_under_the_root(e, fd);
  errno = error;
  return file;
}

static uint64_t mixed(uint64_t x) {
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 27;
  x *= UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

// Who goes on at `at` of the part of a file that a target has; never zero, which is a new target.
static uint64_t stream(uint64_t inode, uint64_t at) {
  const uint64_t pid = (uint64_t)syscall(SYS_getpid);
  return mixed(mixed(mixed(inode) + pid) + at) % 0xffff + 1;
}

static uint64_t units(uint64_t nanoseconds) { return (nanoseconds + 63) >> UNIT_BITS; }

static uint64_t transfer(uint64_t bytes, uint64_t rate) {
  return (uint64_t)((double)bytes * 1e9 / (double)rate);
}

// [at, at + bytes) of a file, or of the part of it that one target has.
struct request {
  uint64_t inode;
  uint64_t at;
  uint64_t bytes;
  uint64_t latency;
  uint64_t switch_cost;
};

// The target serves it after all earlier requests.
static uint64_t serve(penstock_emulation* e, penstock_target* target, uint64_t arrival,
                      struct request r) {
  const uint64_t continues = stream(r.inode, r.at);
  const uint64_t next = stream(r.inode, r.at + r.bytes);
  const uint64_t cost = r.latency + transfer(r.bytes, e->rate);
  uint64_t before = atomic_load_explicit(&target->busy, memory_order_relaxed);
  uint64_t until;
  bool switched;
  do {
    const uint64_t last = before & ((1u << STREAM_BITS) - 1);
    const uint64_t busy = before >> STREAM_BITS;
    switched = last != 0 && last != continues;
    until = (busy > arrival ? busy : arrival) + units(cost + (switched ? r.switch_cost : 0));
  } while (!atomic_compare_exchange_weak_explicit(&target->busy, &before,
                                                  until << STREAM_BITS | next, memory_order_relaxed,
                                                  memory_order_relaxed));
  atomic_fetch_add_explicit(&target->requests, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&target->bytes, r.bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&target->switches, switched, memory_order_relaxed);
  return until;
}

// Without a change of streams: what passes a link, and a flush.
static uint64_t occupy(penstock_busy* word, uint64_t arrival, uint64_t nanoseconds) {
  uint64_t before = atomic_load_explicit(word, memory_order_relaxed);
  uint64_t until;
  uint64_t after;
  do {
    const uint64_t busy = before >> STREAM_BITS;
    until = (busy > arrival ? busy : arrival) + units(nanoseconds);
    after = until << STREAM_BITS | (before & ((1u << STREAM_BITS) - 1));
  } while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed,
                                                  memory_order_relaxed));
  return until;
}

// How much of the first `end` bytes of a file its k-th target has.
static uint64_t part(const penstock_emulation* e, uint64_t end, uint32_t k) {
  const uint64_t row = e->stripe * e->count;
  const uint64_t before = e->stripe * k;
  const uint64_t rest = end % row;
  const uint64_t last = rest <= before ? 0 : rest - before;
  return end / row * e->stripe + (last < e->stripe ? last : e->stripe);
}

static penstock_target* target_of(penstock_emulation* e, uint64_t inode, uint32_t k) {
  return &e->target[(inode + k) % e->targets];
}

static void put(uint8_t* at, uint64_t value, int bytes) {
  for (int k = 0; k < bytes; ++k) at[k] = (uint8_t)(value >> 8 * k);
}

// lov_user_md_v1 and its objects, of which only the target's number means anything here.
ssize_t penstock_layout(struct penstock_file file, uint8_t* value, size_t room) {
  enum { HEAD = 32, OBJECT = 24, STRIPE_SIZE = 24, STRIPE_COUNT = 28, TARGET = 20 };
  const penstock_emulation* e = active();
  const size_t bytes = HEAD + OBJECT * (size_t)e->count;
  if (room == 0) return (ssize_t)bytes;
  if (room < bytes) {
    errno = ERANGE;
    return -1;
  }
  memset(value, 0, bytes);
  put(value, 0x0BD10BD0, 4);
  put(value + STRIPE_SIZE, e->stripe, 4);
  put(value + STRIPE_COUNT, e->count, 2);
  for (uint32_t k = 0; k < e->count; ++k) {
    put(value + HEAD + OBJECT * k + TARGET, (file.inode + k) % e->targets, 4);
  }
  return (ssize_t)bytes;
}

// Words hold units since `began`; the callers' times are CLOCK_MONOTONIC nanoseconds.
static uint64_t since(const penstock_emulation* e, uint64_t time) {
  return time > e->began ? (time - e->began) >> UNIT_BITS : 0;
}
static uint64_t clock_of(const penstock_emulation* e, uint64_t until) {
  return e->began + (until << UNIT_BITS);
}

uint64_t penstock_arrive(void) {
  const uint64_t time = now() - lateness;
  lateness = 0;
  return time;
}

static void sleep_until(uint64_t time) {
  if (!precise) {
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    precise = true;
  }
  const struct timespec until = {(time_t)(time / SECOND), (long)(time % SECOND)};
  // By number: no point of cancellation, so that what was done is also reported.
  while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0 &&
         errno == EINTR) {
  }
}

static void wait_until(uint64_t finish) {
  const bool early = now() < finish;
  if (early) sleep_until(finish);
  // That the kernel woke us late, or that the real disk was slow for once, is not the emulated
  // machine's fault: the thread's next request counts from when it would have come. Above the
  // client library a slow call is the emulated machine's own time.
  const uint64_t late = now() - finish;
  lateness = late < MOST_LATENESS && (early || CHARGES_TARGETS) ? late : 0;
}

static uint64_t charge(penstock_emulation* e, uint64_t arrival, struct request whole) {
  const uint64_t start = since(e, arrival);
  uint64_t latest = start;
  if (link_word != NULL) latest = occupy(link_word, start, transfer(whole.bytes, link_rate));
  for (uint32_t k = 0; CHARGES_TARGETS && k < e->count; ++k) {
    const uint64_t from = part(e, whole.at, k);
    const uint64_t to = part(e, whole.at + whole.bytes, k);
    if (from == to) continue;
    struct request request = whole;
    request.at = from;
    request.bytes = to - from;
    const uint64_t until = serve(e, target_of(e, whole.inode, k), start, request);
    if (until > latest) latest = until;
  }
  return clock_of(e, latest);
}

// A long request is charged piece by piece: others come in between, as on a real target, and one
// whose process is killed does not delay others by all of it.
uint64_t penstock_serve(struct penstock_file file, enum penstock_emulated kind, uint64_t arrival,
                        uint64_t at, uint64_t bytes) {
  penstock_emulation* e = active();
  const uint64_t quarter_second = e->rate / 4 * e->count;
  const uint64_t row = e->stripe * e->count;
  const uint64_t piece = quarter_second > row ? quarter_second / row * row : row;
  const uint64_t switch_cost =
      kind == PENSTOCK_EMULATED_READ ? e->read_switch_cost : e->switch_cost;
  uint64_t latency = e->latency;
  while (bytes > 0) {
    const uint64_t length = bytes < piece ? bytes : piece;
    arrival = charge(e, arrival, (struct request){file.inode, at, length, latency, switch_cost});
    wait_until(arrival);
    latency = 0;
    at += length;
    bytes -= length;
  }
  return arrival;
}

void penstock_flush(struct penstock_file file, uint64_t arrival) {
  penstock_emulation* e = active();
  uint64_t latest = since(e, arrival);
  for (uint32_t k = 0; CHARGES_TARGETS && e->sync_cost > 0 && k < e->count; ++k) {
    penstock_target* target = target_of(e, file.inode, k);
    const uint64_t until = occupy(&target->busy, since(e, arrival), e->sync_cost);
    if (until > latest) latest = until;
  }
  wait_until(clock_of(e, latest));
}

#if defined(PENSTOCK_ABOVE_THE_CLIENT)
static const char role[] = "client:";
static penstock_busy* link_of(penstock_emulation* e, const char* name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *name != '\0'; ++name) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  link_rate = e->client_link;
  return &e->client[hash % PENSTOCK_CLIENT_LINKS];
}
#else
static const char role[] = "io-node:";
static penstock_busy* link_of(penstock_emulation* e, const char* number) {
  uint32_t k = 0;
  for (; *number >= '0' && *number <= '9'; ++number) k = 10 * k + (uint32_t)(*number - '0');
  link_rate = e->io_node_link;
  return &e->io_node[k % PENSTOCK_IO_NODE_LINKS];
}
#endif

static void choose_link(penstock_emulation* e) {
  const char* link = getenv("PENSTOCK_EMULATOR_LINK");
  if (link == NULL || strncmp(link, role, sizeof role - 1) != 0) return;
  penstock_busy* word = link_of(e, link + sizeof role - 1);
  if (link_rate > 0) link_word = word;
}

static penstock_emulation* map(const char* path) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  const long size = syscall(SYS_lseek, fd, 0L, SEEK_END);
  void* file =
      size == (long)sizeof(penstock_emulation)
          ? mmap(NULL, sizeof(penstock_emulation), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
          : MAP_FAILED;
  syscall(SYS_close, fd);
  return file == MAP_FAILED ? NULL : file;
}

static bool is_sound(const penstock_emulation* e) {
  // Made before the machine was started: its times mean nothing now.
  if (e->began > now()) return false;
  return e->magic == PENSTOCK_EMULATION_MAGIC && e->version == PENSTOCK_EMULATION_VERSION &&
         e->size == sizeof *e && e->targets >= 1 && e->targets <= PENSTOCK_TARGETS &&
         e->count >= 1 && e->count <= e->targets && e->stripe >= 1 &&
         e->stripe <= PENSTOCK_LARGEST_STRIPE && e->rate >= 1 && e->root_length >= 1 &&
         e->root_length < PENSTOCK_EMULATION_ROOT_BYTES;
}

// Without a sound file, everything passes through.
__attribute__((constructor)) static void start(void) {
  const int error = errno;
  penstock_real();
  const char* path = getenv("PENSTOCK_EMULATOR");
  penstock_emulation* e = path != NULL ? map(path) : NULL;
  if (e != NULL && is_sound(e)) {
    choose_link(e);
    if (CHARGES_TARGETS || link_word != NULL) {
      atomic_store_explicit(&emulation, e, memory_order_release);
    }
  }
  errno = error;
}
