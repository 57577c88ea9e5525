#include "connection.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <climits>

namespace penstock {

Mapping map_window(int descriptor, std::uint32_t bytes) {
  if (bytes == 0 || bytes > PENSTOCK_LARGEST || bytes % PENSTOCK_MAILBOX_BYTES != 0) return {};
  const std::size_t whole = bytes + PENSTOCK_MAILBOX_BYTES;
  // Only memory files have seals, so other kinds of files are rejected here.
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return {};
  struct stat is{};
  if (::fstat(descriptor, &is) != 0 || is.st_size < static_cast<off_t>(whole)) return {};
  void* address = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return {};
  return {address, whole};
}

bool Connection::send(const penstock_reply& reply, bool by_socket) const {
  if (by_socket) {
    return ::send(descriptor, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
  }
  auto* mailbox =
      reinterpret_cast<penstock_mailbox*>(window.data() + window.size() - PENSTOCK_MAILBOX_BYTES);
  // The last reply, maybe another thread's, is complete: its client has sent the next request.
  [[maybe_unused]] const auto last =
      std::atomic_ref(mailbox->answered).load(std::memory_order_acquire);
  mailbox->reply = reply;
  std::atomic_ref(mailbox->answered).store(reply.number, std::memory_order_seq_cst);
  if (std::atomic_ref(mailbox->sleeps).load(std::memory_order_seq_cst) == 0) return true;
  ::syscall(SYS_futex, &mailbox->answered, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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
