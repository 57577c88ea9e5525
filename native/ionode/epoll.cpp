#include "epoll.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

namespace penstock {
namespace {

constexpr std::uint32_t interest = EPOLLIN | EPOLLRDHUP | EPOLLET;

int wait_for_events(int epoll, std::span<epoll_event> events, Time from, Time until) {
  const int most = static_cast<int>(events.size());
  if (until == never) return ::epoll_wait(epoll, events.data(), most, -1);
  const Time left = until > from ? until - from : 0;
  const timespec timeout{static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
  const auto count = ::syscall(SYS_epoll_pwait2, epoll, events.data(), most, &timeout, nullptr, 0);
  if (count >= 0 || errno != ENOSYS) return static_cast<int>(count);
  const Time milliseconds = std::min<Time>((left + 999'999) / 1'000'000, INT_MAX);
  return ::epoll_wait(epoll, events.data(), most, static_cast<int>(milliseconds));
}

}  // namespace

Epoll::Epoll() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  poke_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  if (epoll_ < 0 || poke_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, poke_, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "I/O node");
}

Epoll::~Epoll() {
  ::close(epoll_);
  ::close(poke_);
}

bool Epoll::add_listener(int listener) {
  // The low bit tells a listener from a connection.
  epoll_event event{EPOLLIN, {.u64 = static_cast<std::uint64_t>(listener) << 1 | 1}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener, &event) == 0;
}

bool Epoll::add(int descriptor, Peer& peer) {
  epoll_event event{interest, {.ptr = &peer}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Epoll::set_sending(int descriptor, Peer& peer, bool sends) {
  epoll_event event{sends ? interest | EPOLLOUT : interest, {.ptr = &peer}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void Epoll::poke() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(poke_, &one, sizeof one);
}

std::span<epoll_event> Epoll::wait(std::span<epoll_event> events, Time from, Time until) {
  const int count = std::max(0, wait_for_events(epoll_, events, from, until));
  const auto there = events.first(static_cast<std::size_t>(count));
  const auto poked = std::find_if(there.begin(), there.end(), [](const epoll_event& event) {
    return event.data.ptr == nullptr;
  });
  if (poked == there.end()) return there;
  std::uint64_t pokes = 0;
  [[maybe_unused]] const ssize_t got = ::read(poke_, &pokes, sizeof pokes);
  std::move(poked + 1, there.end(), poked);
  return there.first(there.size() - 1);
}

}  // namespace penstock
