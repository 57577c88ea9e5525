#include "connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace penstock {

bool Connection::send(const penstock_reply& reply) const {
  return ::send(descriptor, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
}

bool Connection::send(const penstock_reply& reply, const penstock_challenge& challenge) const {
  struct {
    penstock_reply reply;
    penstock_challenge challenge;
  } message{reply, challenge};
  return ::send(descriptor, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         sizeof message;
}

bool Connection::send_rest() {
  while (sent < to_send) {
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    const std::size_t head = sizeof reply;
    if (sent < head) {
      parts[count++] = {reinterpret_cast<std::byte*>(&reply) + sent, head - sent};
    }
    const std::size_t data = std::max(sent, head) - head;
    parts[count++] = {payload.data() + data, to_send - head - data};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t taken = ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent += static_cast<std::size_t>(taken);
  }
  return true;
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
