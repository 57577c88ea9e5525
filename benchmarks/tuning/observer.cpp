// What an I/O node's metrics take from a request: the mean of many, in nanoseconds.

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "observer.hpp"

int main() {
  constexpr std::uint64_t requests = 10'000'000, files = 16, bytes = 4096;
  penstock::Observer observer(0);
  penstock::Request request{};
  request.kind = penstock::Kind::write;
  request.bytes = bytes;
  std::uint64_t clients[files] = {};
  penstock::Time now = 0;
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t k = 0; k < requests; ++k) {
    const std::uint64_t file = k % files;
    request.offset = k / files * bytes;
    observer.arrived(request, file, clients[file], now += 1000);
    observer.left(request.kind, bytes, now += 1000);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  const bool whole = observer.take(now).writes == requests;
  std::printf("%.2f\n", std::chrono::duration<double, std::nano>(took).count() / requests);
  return whole ? 0 : 1;
}
