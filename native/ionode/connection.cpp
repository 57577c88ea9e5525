#include "connection.hpp"

#include <sys/socket.h>

namespace penstock {

bool Connection::send(const penstock_reply& reply) const {
  return ::send(descriptor, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
}

Mapping Payloads::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Mapping payload = std::move(free_.back());
      free_.pop_back();
      return payload;
    }
  }
  void* address = ::mmap(nullptr, PENSTOCK_LARGEST, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return {};
  return {address, PENSTOCK_LARGEST};
}

void Payloads::give_back(Mapping payload) {
  const std::lock_guard lock(mutex_);
  if (payload && free_.size() < kept) free_.push_back(std::move(payload));
}

}  // namespace penstock
