#include "node.hpp"

#include <fcntl.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "listeners.hpp"
#include "privileges.hpp"

namespace penstock {

Node::Node(const NodeOptions& options)
    : shared_(options),
      queues_(options.settings, options.stripe_size, options.all_users),
      crew_(shared_, epoll_, *this),
      desk_(shared_, queues_),
      intake_(shared_, queues_, crew_, epoll_),
      server_(shared_, queues_, crew_, desk_, intake_),
      poller_(shared_, queues_, crew_, desk_, intake_, epoll_) {
  // A file size limit or a client that went away is an error number, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

void Node::listen_unix(const std::string& path) {
  const int listener = penstock::listen_unix(path, shared_.options.all_users);
  poller_.listen(Lock(shared_.mutex), listener, Transport::local);
}

std::uint16_t Node::listen_tcp(const std::string& host, std::uint16_t port,
                               const std::string& token, const std::vector<std::string>& roots) {
  if (token.size() != PENSTOCK_TOKEN_BYTES) throw std::invalid_argument("a token has 32 bytes");
  for (const std::string& path : roots) {
    const int root = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) throw std::system_error(errno, std::generic_category(), path);
    server_.add_root({path, root});
  }
  const TcpListener listener = penstock::listen_tcp(host, port);
  intake_.require(token);
  poller_.listen(Lock(shared_.mutex), listener.descriptor, Transport::tcp);
  return listener.port;
}

void Node::start() {
  const Lock lock(shared_.mutex);
  if (std::exchange(started_, true)) throw std::logic_error("the I/O node was started before");
  poller_.start(lock);
  // Else what its clients cost at most would be kept once for each thread that ever polled.
  ::mallopt(M_ARENA_MAX, 2);
  crew_.start(lock, [node = weak_from_this()] {
    if (const auto self = node.lock()) self->work();
  });
}

void Node::work() {
  Lock lock(shared_.mutex);
  if (!std::exchange(confined_, true)) confine();  // the first thread: it starts the others
  crew_.run(lock);
}

// The threads that read what clients send open files below the roots alone, even if one of them is
// made to do what it should not.
void Node::confine() const {
  std::vector<int> to{poller_.reserve()};
  for (const Root& root : server_.roots()) to.push_back(root.descriptor);
  confine_thread(to);
}

bool Node::is_ready_before(const Lock& lock, Time until) const {
  return queues_.is_ready_before(lock, until, now());
}

std::size_t Node::most_threads(const Lock& lock) const {
  return std::max<std::size_t>(queues_.settings(lock).depth, queues_.services(lock) + 1);
}

void Node::configure(const Settings& settings, std::uint64_t stripe_size) {
  const Lock lock(shared_.mutex);
  queues_.configure(lock, settings, stripe_size, shared_.sessions(lock));
  crew_.poke(lock);
}

void Node::weigh(const std::map<std::string, double>& weights) {
  // Checked now, while there is a caller to report to, not when a job of that name arrives.
  for (const auto& [job, weight] : weights) {
    if (!(weight > 0) || weight > std::numeric_limits<double>::max()) {
      throw std::invalid_argument("the weight of '" + job + "' must be a number above zero");
    }
  }
  const Lock lock(shared_.mutex);
  queues_.weigh(lock, weights, shared_.sessions(lock));
}

void Node::own(std::vector<SubordinateIds> ids) {
  poller_.own(Lock(shared_.mutex), std::move(ids));
}

Measurement Node::measure() {
  const Lock lock(shared_.mutex);
  desk_.collect_all(lock);
  const Sessions& sessions = shared_.sessions(lock);
  Measurement measured{shared_.counts(lock),
                       queues_.settings(lock).scheduler,
                       intake_.size(lock) + desk_.size(lock),
                       sessions.size() + desk_.size(lock),
                       sessions.files(),
                       queues_.size(lock),
                       {},
                       {}};
  for (const auto& [key, group] : sessions.groups()) {
    measured.groups[queues_.public_name(*group)] += group->bytes;
    measured.in_service[queues_.public_name(*group)] += queues_.in_service(lock, *group);
  }
  return measured;
}

Observation Node::observe() {
  const Lock lock(shared_.mutex);
  desk_.collect_all(lock);
  return shared_.observer(lock).take(now());
}

bool Node::drain(double seconds) {
  Lock lock(shared_.mutex);
  shared_.draining(lock) = true;
  poller_.close_listeners(lock);
  epoll_.poke();
  return shared_.changed.wait_until(lock, in_seconds(seconds), [&] {
    return intake_.size(lock) == 0 && desk_.size(lock) == 0 && queues_.idle(lock);
  });
}

bool Node::stop(double seconds) {
  Lock lock(shared_.mutex);
  return crew_.stop(lock, seconds);
}

Settings Node::settings() {
  const Lock lock(shared_.mutex);
  return queues_.settings(lock);
}

std::uint64_t Node::stripe_size() {
  const Lock lock(shared_.mutex);
  return queues_.stripe_size(lock);
}

}  // namespace penstock
