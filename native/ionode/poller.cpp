#include "poller.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

constexpr int events_at_once = 256;
// Clients that are let in before those that were let in are read: who says at once who it is was
// read before as many strangers as one origin may have came behind it.
constexpr int accepted_at_once = 16;

Origin origin_of_user(uid_t uid) {
  Origin origin;
  origin.name[0] = std::byte{1};
  std::memcpy(origin.name.data() + 1, &uid, sizeof uid);
  return origin;
}

Origin origin_of_address(const sockaddr_storage& address) {
  Origin origin;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    origin.name[0] = std::byte{4};
    std::memcpy(origin.name.data() + 1, &four.sin_addr, sizeof four.sin_addr);
  } else if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    origin.name[0] = std::byte{6};
    std::memcpy(origin.name.data() + 1, &six.sin6_addr, origin.name.size() - 1);
  }
  return origin;
}

int open_reserve() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category(), "I/O node"); }

}  // namespace

Poller::Poller(Shared& shared, Queues& queues, Crew& crew, Desk& desk, Intake& intake, Epoll& epoll)
    : shared_(shared),
      queues_(queues),
      crew_(crew),
      desk_(desk),
      intake_(intake),
      epoll_(epoll),
      reserve_(open_reserve()) {
  if (reserve_ < 0) fail();
}

Poller::~Poller() {
  for (const auto& [listener, transport] : listeners_) ::close(listener);
  if (reserve_ >= 0) ::close(reserve_);
}

void Poller::start(const Lock&) {
  for (const auto& [listener, transport] : listeners_) {
    if (!epoll_.add_listener(listener)) fail();
  }
}

void Poller::close_listeners(const Lock&) {
  for (const auto& [listener, transport] : std::exchange(listeners_, {})) ::close(listener);
}

Time Poller::poll(Lock& lock) {
  close_doomed(lock);
  const Time before = now();
  expire(lock, before);
  queues_.make_room(lock, before);
  const Time until = deadline(lock, before);
  crew_.sleeps_until(lock, until);
  const std::vector<Connection*> resumed = intake_.take_resumed(lock);
  const Time next = resumed.empty() ? std::min(until, desk_.ready_at()) : 0;
  lock.unlock();

  std::array<epoll_event, events_at_once> events;
  const auto there = epoll_.wait(events, before, next);
  const Time after = now();
  for (const epoll_event& event : there) handle(event);
  // After what epoll reported, for it may have reported the same.
  for (Connection* connection : resumed) intake_.resume(*connection);
  desk_.read(after);

  lock.lock();
  intake_.arrive(lock, before, after);
  desk_.act(lock, after);
  return after;
}

Time Poller::deadline(const Lock& lock, Time now) const {
  return std::min(
      {queues_.deadline(lock, now), shared_.strangers(lock).expires(), intake_.expires(lock)});
}

void Poller::handle(const epoll_event& event) {
  if (const int listener = Epoll::listener_of(event); listener >= 0) {
    accept_clients(listener);
  } else if (auto* peer = static_cast<Peer*>(event.data.ptr); peer->transport == Transport::local) {
    desk_.hear(static_cast<Caller&>(*peer));
  } else {
    intake_.input(static_cast<Connection&>(*peer), event.events);
  }
}

void Poller::accept_clients(int listener) {
  for (int k = 0; k < accepted_at_once; ++k) {
    const int descriptor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) return;
      // No descriptor left: turn one client away, lest it waits for ever.
      ::close(reserve_);
      const int refused = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (refused >= 0) ::close(refused);
      reserve_ = open_reserve();
      const Lock lock(shared_.mutex);
      ++shared_.counts(lock).refused;
      return;
    }
    welcome(listener, descriptor);
  }
}

void Poller::welcome(int listener, int descriptor) {
  const Lock lock(shared_.mutex);
  const auto entry = listeners_.find(listener);
  const bool local = entry == listeners_.end() || entry->second == Transport::local;
  Origin origin;
  uid_t uid = shared_.own_uid;
  bool known = !shared_.draining(lock);
  if (local) {
    known = known && peer_user(descriptor, uid);
    uid = owner_of(lock, uid);
    known = known && (shared_.options.all_users || uid == shared_.own_uid);
    origin = origin_of_user(uid);
  } else {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
    origin = origin_of_address(address);
  }
  Quota::Share share;
  if (known) share = shared_.descriptors->take(origin);
  if (!share) {
    ++shared_.counts(lock).refused;
    ::close(descriptor);
    return;
  }
  Peer& peer =
      local ? static_cast<Peer&>(desk_.let_in(lock, descriptor, uid, origin, std::move(share)))
            : intake_.let_in(lock, descriptor, origin, std::move(share));
  add_stranger(lock, peer, origin);
  if (epoll_.add(descriptor, peer)) return;
  ++shared_.counts(lock).refused;
  doom(lock, peer);
}

void Poller::add_stranger(const Lock& lock, Peer& peer, const Origin& origin) {
  Peer* const gives_way = shared_.strangers(lock).add(peer, origin, now());
  if (gives_way == nullptr) return;
  ++shared_.counts(lock).refused;
  doom(lock, *gives_way);
}

// Who has subordinate ids has one user's part with all of them.
uid_t Poller::owner_of(const Lock&, uid_t uid) const {
  for (const SubordinateIds& ids : subordinate_ids_) {
    if (uid >= ids.first && uid - ids.first < ids.count) return ids.owner;
  }
  return uid;
}

void Poller::doom(const Lock& lock, Peer& peer) {
  if (peer.transport == Transport::local) {
    desk_.doom(lock, static_cast<Caller&>(peer));
  } else {
    intake_.doom(lock, static_cast<Connection&>(peer));
  }
}

void Poller::close_doomed(Lock& lock) {
  if (shared_.draining(lock)) {
    intake_.doom_all(lock);
    desk_.doom_all(lock);
  }
  intake_.close_doomed(lock);
  desk_.close_doomed(lock);
}

void Poller::expire(const Lock& lock, Time now) {
  while (Peer* const stranger = shared_.strangers(lock).take_expired(now)) {
    ++shared_.counts(lock).refused;
    doom(lock, *stranger);
  }
  intake_.expire(lock, now);
}

}  // namespace penstock
