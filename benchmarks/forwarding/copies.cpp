// What copies cost on this machine, in one thread: the ceiling of any forwarder.
//
//   copies FILE
//
// Prints microseconds for a MiB written by pwrite; copied to shared memory and then written, as an
// I/O node's client and the I/O node do; and moved through a pipe without a copy (vmsplice,
// splice).

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr std::size_t size = 1 << 20;
constexpr int blocks = 64, rounds = 15;

template <class Write>
static double best(Write write) {
  double least = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (int k = 0; k < blocks; ++k) write(static_cast<off_t>(k) * static_cast<off_t>(size));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    least = std::min(least, took.count() / blocks);
  }
  return least;
}

static void must(bool holds) {
  if (!holds) std::abort();
}

int main(int, char** argv) {
  const int file = open(argv[1], O_CREAT | O_RDWR, 0600);
  auto* data = static_cast<char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* window = static_cast<char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::memset(data, 'x', size);
  int ends[2];
  must(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, size) >= static_cast<int>(size));
  const auto write = [&](const char* from, off_t at) {
    must(pwrite(file, from, size, at) == static_cast<ssize_t>(size));
  };
  write(data, (blocks - 1) * static_cast<off_t>(size));
  const double plain = best([&](off_t at) { write(data, at); });
  const double copied = best([&](off_t at) {
    std::memcpy(window, data, size);
    write(window, at);
  });
  const double piped = best([&](off_t at) {
    const iovec piece{data, size};
    must(vmsplice(ends[1], &piece, 1, 0) == static_cast<ssize_t>(size));
    for (std::size_t done = 0; done < size;) {
      off_t to = at + static_cast<off_t>(done);
      const ssize_t moved = splice(ends[0], nullptr, file, &to, size - done, 0);
      must(moved > 0);
      done += static_cast<std::size_t>(moved);
    }
  });
  std::printf("%.1f %.1f %.1f\n", plain, copied, piped);
  return 0;
}
