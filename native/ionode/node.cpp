#include "node.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>

#include "privileges.hpp"

namespace penstock {
namespace {

constexpr auto relief_interval = std::chrono::milliseconds(2);
constexpr Time relief_after = 2'000'000;
constexpr std::uint64_t long_bytes = 64 << 10;
constexpr std::uint32_t long_time = 30'000;
constexpr std::uint32_t requests_between_polls = 16;
constexpr int backlog = 1024;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::uint64_t boot_id() {
  std::uint64_t id = 0;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    unsigned long first = 0;
    unsigned second = 0;
    unsigned third = 0;
    if (std::fscanf(file, "%8lx-%4x-%4x", &first, &second, &third) == 3) {
      id = first << 32 | second << 16 | third;
    }
    std::fclose(file);
  }
  return id;
}

std::uint64_t descriptors_for_clients(const Limits& limits) {
  if (limits.descriptors != 0) return limits.descriptors;
  constexpr rlim_t own = 64;  // of the process itself, and for a moment
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  return most.rlim_cur > 2 * own ? most.rlim_cur - own : own;
}

// Those who have not said who they are leave descriptors to the others.
std::size_t strangers_of_all(std::uint64_t descriptors) {
  constexpr std::uint64_t most = 1024;
  return std::clamp<std::uint64_t>(descriptors / 4, 1, most);
}

auto until(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

Time now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<Time>(at.tv_sec) * 1'000'000'000 + static_cast<Time>(at.tv_nsec);
}

Node::Node(const NodeOptions& options)
    : options_(options),
      boot_(boot_id()),
      own_uid_(::geteuid()),
      descriptors_(std::make_shared<Quota>(descriptors_for_clients(options.limits))),
      processes_(std::make_shared<Quota>(options.limits.processes)),
      permits_quota_(std::make_shared<Quota>(options.limits.permits)),
      memory_(std::make_shared<Quota>(options.limits.memory)),
      queues_(options.settings, options.stripe_size, options.all_users),
      sessions_(options.limits),
      observer_(now()),
      strangers_(options.limits.strangers, strangers_of_all(descriptors_->total())) {
  // A file size limit or a client that went away is an error number, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  poke_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (epoll_ < 0 || poke_ < 0 || reserve_ < 0) fail("I/O node");
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, poke_, &event) != 0) fail("I/O node");
}

Node::~Node() {
  for (const auto& [listener, transport] : listeners_) ::close(listener);
  for (const Root& root : roots_) ::close(root.descriptor);
  for (const int descriptor : {epoll_, poke_, reserve_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void Node::listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    fail(path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail(path);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      // Who may connect is decided by the peer's identity, not by the socket's mode.
      (options_.all_users && ::chmod(path.c_str(), 0666) != 0) ||
      ::listen(listener, backlog) != 0) {
    const int error = errno;
    ::close(listener);
    errno = error;
    fail(path);
  }
  const std::lock_guard lock(mutex_);
  listeners_[listener] = Transport::local;
}

std::uint16_t Node::listen_tcp(const std::string& host, std::uint16_t port,
                               const std::string& token, const std::vector<std::string>& roots) {
  if (token.size() != PENSTOCK_TOKEN_BYTES) throw std::invalid_argument("a token has 32 bytes");
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0) {
    throw std::invalid_argument("'" + host + "' is not a numeric address");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> held(addresses, &::freeaddrinfo);
  for (const std::string& path : roots) {
    const int root = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) fail(path);
    roots_.push_back({path, root});
  }
  const int listener =
      ::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail(host);
  const int yes = 1;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener, addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener, backlog) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    const int error = errno;
    ::close(listener);
    errno = error;
    fail(host);
  }
  token_ = token;
  const std::lock_guard lock(mutex_);
  listeners_[listener] = Transport::tcp;
  // Both kinds of address have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

void Node::start() {
  const std::lock_guard lock(mutex_);
  if (started_) throw std::logic_error("the I/O node was started before");
  for (const auto& [listener, transport] : listeners_) {
    // The low bit tells a listener from a connection.
    epoll_event event{EPOLLIN, {.u64 = static_cast<std::uint64_t>(listener) << 1 | 1}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener, &event) != 0) fail("I/O node");
  }
  // Else what its clients cost at most would be kept once for each thread that ever polled.
  ::mallopt(M_ARENA_MAX, 2);
  started_ = true;
  spawn();
}

// With the lock held.
void Node::spawn() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // Signals are for the thread that controls the node.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([self = shared_from_this()] { self->work(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    // No thread to be had: those there are serve on.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Node::work() {
  Lock lock(mutex_);
  if (!std::exchange(confined_, true)) confine();  // the first thread: it starts the others
  while (!stopping_) {
    handed_over_ = false;
    const bool overdue = !polling_ && served_since_poll_ >= requests_between_polls;
    if (!overdue && serve_next(lock)) continue;
    if (!polling_) {
      poll(lock);
    } else {
      follow(lock);
    }
  }
  --threads_;
  changed_.notify_all();
}

// The threads that read what clients send open files below the roots alone, even if one of them is
// made to do what it should not.
void Node::confine() const {
  std::vector<int> to{reserve_};
  for (const Root& root : roots_) to.push_back(root.descriptor);
  confine_thread(to);
}

// Waits until there is something to do.
void Node::follow(Lock& lock) {
  // The poller may sleep past the time at which the scheduler releases a batch.
  if (queues_.is_ready_before(lock, poll_until_, now())) poke();
  if (!watching_) {
    watch(lock);
    return;
  }
  ++idle_;
  followers_.wait(lock, [this] { return handed_over_ || stopping_; });
  --idle_;
}

// Takes over polling if the poller does not come back from a request that should have been short.
void Node::watch(Lock& lock) {
  watching_ = true;
  std::uint64_t seen = polls_ - 1;
  while (!handed_over_ && !stopping_) {
    if (!polling_ && now() - unattended_since_ >= relief_after) break;
    if (polling_ && polls_ == seen) {
      relief_asleep_ = true;
      relief_.wait(lock);
      relief_asleep_ = false;
    } else {
      seen = polls_;
      relief_.wait_for(lock, relief_interval);
    }
  }
  watching_ = false;
}

// Before a long request: have another thread poll, and serve other requests.
void Node::hand_over(const Lock& lock) {
  if (polling_ || handed_over_) return;
  if (idle_ > 0) {
    handed_over_ = true;
    followers_.notify_one();
  } else if (watching_) {
    handed_over_ = true;
    relief_.notify_one();
  } else if (threads_ <=
             std::max<std::size_t>(queues_.settings(lock).depth, queues_.services(lock) + 1)) {
    handed_over_ = true;
    spawn();
  }
}

// Before a short request: have the relief check that it really is short.
void Node::expect_relief(const Lock& lock) {
  if (polling_) return;
  if (relief_asleep_) {
    relief_.notify_one();
  } else if (!watching_ && !handed_over_) {
    hand_over(lock);
  }
}

bool Node::long_to_serve(const Batch& batch) const {
  if (batch.empty() || batch.size() > 8) return true;
  const auto& first = static_cast<const Exchange&>(*batch[0]);
  return batch.bytes() >= long_bytes || first.kind == Kind::sync ||
         first.open_file->usual_time() >= long_time;
}

void Node::poke() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(poke_, &one, sizeof one);
}

void Node::configure(const Settings& settings, std::uint64_t stripe_size) {
  const Lock lock(mutex_);
  queues_.configure(lock, settings, stripe_size, sessions_);
  if (polling_) poke();
}

void Node::weigh(const std::map<std::string, double>& weights) {
  // Checked now, while there is a caller to report to, not when a job of that name arrives.
  for (const auto& [job, weight] : weights) {
    if (!(weight > 0) || weight > std::numeric_limits<double>::max()) {
      throw std::invalid_argument("the weight of '" + job + "' must be a number above zero");
    }
  }
  const Lock lock(mutex_);
  queues_.weigh(lock, weights, sessions_);
}

void Node::own(std::vector<SubordinateIds> ids) {
  const std::lock_guard lock(mutex_);
  subordinate_ids_ = std::move(ids);
}

Measurement Node::measure() {
  const Lock lock(mutex_);
  collect_all();
  Measurement measured{counts_,
                       queues_.settings(lock).scheduler,
                       connections_.size() + callers_.size(),
                       sessions_.size() + callers_.size(),
                       sessions_.files(),
                       queues_.size(lock),
                       {},
                       {}};
  for (const auto& [key, group] : sessions_.groups()) {
    measured.groups[queues_.public_name(*group)] += group->bytes;
    measured.in_service[queues_.public_name(*group)] += queues_.in_service(lock, *group);
  }
  return measured;
}

Observation Node::observe() {
  const std::lock_guard lock(mutex_);
  collect_all();
  return observer_.take(now());
}

bool Node::drain(double seconds) {
  Lock lock(mutex_);
  draining_ = true;
  for (const auto& [listener, transport] : listeners_) ::close(listener);
  listeners_.clear();
  poke();
  return changed_.wait_until(lock, until(seconds), [&] {
    return connections_.empty() && callers_.empty() && queues_.idle(lock);
  });
}

bool Node::stop(double seconds) {
  Lock lock(mutex_);
  stopping_ = true;
  followers_.notify_all();
  relief_.notify_all();
  poke();
  return changed_.wait_until(lock, until(seconds), [this] { return threads_ == 0; });
}

Settings Node::settings() {
  const Lock lock(mutex_);
  return queues_.settings(lock);
}

std::uint64_t Node::stripe_size() {
  const Lock lock(mutex_);
  return queues_.stripe_size(lock);
}

}  // namespace penstock
