#include "caller.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace penstock {

SharedPage make_permit_page() {
  SharedPage made;
  const int descriptor = ::memfd_create("penstock-permits", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return made;
  constexpr std::size_t bytes = sizeof(penstock_permit_page);
  void* address = MAP_FAILED;
  if (::ftruncate(descriptor, bytes) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (address == MAP_FAILED) {
    ::close(descriptor);
    return made;
  }
  made.memory = Mapping(address, bytes);
  made.descriptor = descriptor;
  return made;
}

bool peer_user(int descriptor, uid_t& uid) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  uid = peer.uid;
  return true;
}

bool receive(Caller& caller, CallerMessage& into) {
  into.client = &caller;
  into.what = CallerMessage::What::said;
  iovec part{&into.hello, sizeof into.hello};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ssize_t got = -1;
  do {
    got = ::recvmsg(caller.descriptor, &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  into.bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got <= 0) into.what = CallerMessage::What::gone;
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) into.bytes = 1;
  return true;
}

bool welcome_caller(int descriptor, std::uint64_t node, int page) {
  penstock_permit_welcome welcome{PENSTOCK_PERMIT_MAGIC, 0, node};
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_len = CMSG_LEN(sizeof(int));
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  std::memcpy(CMSG_DATA(header), &page, sizeof page);
  return ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof welcome;
}

}  // namespace penstock
