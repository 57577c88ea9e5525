// A client of an I/O node, for native tests and the fuzzer.

#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "check.hpp"
#include "node.hpp"

namespace penstock {

// With a descriptor that goes along, unless it is negative; as sendmsg returns.
inline ssize_t send_frame(int socket, const void* frame, std::size_t length, int passed,
                          int flags) {
  iovec part{const_cast<void*>(frame), length};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_len = CMSG_LEN(sizeof(int));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  }
  return ::sendmsg(socket, &message, flags);
}

inline penstock_request request(std::uint32_t operation, std::uint32_t bytes = 0) {
  return {PENSTOCK_WIRE_MAGIC, operation, 1, 0, 0, bytes, 0};
}

// A client of a node that runs; ends the test if anything but the expected comes back.
class Client {
 public:
  Client(const std::string& path, std::uint64_t session, int file) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const int memory = ::memfd_create("window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(::ftruncate(memory, bytes + PENSTOCK_MAILBOX_BYTES) == 0 &&
          ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    window = static_cast<std::uint64_t*>(::mmap(nullptr, bytes + PENSTOCK_MAILBOX_BYTES,
                                                PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    struct {
      penstock_request head = request(PENSTOCK_HELLO, sizeof(penstock_introduction));
      penstock_introduction introduction{};
    } hello;
    hello.introduction.session[0] = session;
    hello.introduction.window = bytes;
    hello.introduction.job[0] = static_cast<char>('a' + session % 2);
    send(&hello, sizeof hello, memory);
    ::close(memory);
    penstock_reply reply{};
    CHECK(::recv(socket_, &reply, sizeof reply, MSG_WAITALL) == sizeof reply && reply.result == 0);
    penstock_request open = request(PENSTOCK_OPEN);
    open.flags = O_RDWR;
    open.number = ++requests_;
    send(&open, sizeof open, file);
    const std::int64_t handle = answer();
    CHECK(handle >= 0);
    handle_ = static_cast<std::uint32_t>(handle);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    ::close(socket_);
    ::munmap(window, bytes + PENSTOCK_MAILBOX_BYTES);
  }

  std::int64_t call(std::uint32_t operation, std::uint64_t offset = 0, std::uint32_t length = 0) {
    ask(operation, offset, length);
    return answer();
  }

  void ask(std::uint32_t operation, std::uint64_t offset, std::uint32_t length) {
    penstock_request message = request(operation, length);
    message.file = handle_;
    message.offset = offset;
    message.number = ++requests_;
    send(&message, sizeof message, -1);
  }

  std::int64_t answer() const {
    auto* mailbox =
        reinterpret_cast<penstock_mailbox*>(reinterpret_cast<std::byte*>(window) + bytes);
    const Time end = now() + 20'000'000'000;
    while (std::atomic_ref(mailbox->answered).load(std::memory_order_acquire) != requests_) {
      CHECK(now() < end);
      std::this_thread::yield();
    }
    return mailbox->reply.result;
  }

  static constexpr std::uint32_t bytes = 256 << 10;
  std::uint64_t* window = nullptr;

 private:
  void send(const void* frame, std::size_t length, int passed) const {
    CHECK(send_frame(socket_, frame, length, passed, 0) == static_cast<ssize_t>(length));
  }

  int socket_ = -1;
  std::uint32_t handle_ = 0;
  std::uint32_t requests_ = 1;  // HELLO's
};

}  // namespace penstock
