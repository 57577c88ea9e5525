// An I/O node driven by hand, without threads: what clients may send, in any order, to several
// connections over both transports. `make fuzz` builds it with libFuzzer and ASan.
//
// Whatever came, at the end of a case nothing of it is left: no session, file, request, memory or
// descriptor.

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test_client.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t window_bytes = 8 << 10;
constexpr rlim_t largest_file = 1 << 20;
constexpr std::size_t most_connections = 4;
constexpr int cases_between_counts = 4096;

int memory_file(std::uint32_t bytes, int seals) {
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(descriptor >= 0 && ::ftruncate(descriptor, bytes) == 0);
  if (seals != 0) CHECK(::fcntl(descriptor, F_ADD_SEALS, seals) == 0);
  return descriptor;
}

// Without pipes: a sanitizer talks through some to the program that names functions for it.
int open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  CHECK(folder != nullptr);
  int count = 0;
  while (const dirent* entry = ::readdir(folder)) {
    std::array<char, 8> to{};
    [[maybe_unused]] const ssize_t length =
        ::readlinkat(::dirfd(folder), entry->d_name, to.data(), to.size() - 1);
    if (std::strncmp(to.data(), "pipe:", 5) != 0) ++count;
  }
  ::closedir(folder);
  return count;
}

// The bytes of a case, from the front; zeros when they have run out.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ == size_; }
  std::uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int k = 0; k < 4; ++k) value = value << 8 | byte();
    return value;
  }
  std::span<const std::uint8_t> some(std::size_t count) {
    const std::size_t taken = std::min(count, size_ - at_);
    at_ += taken;
    return {data_ + at_ - taken, taken};
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace

// A friend of the node: does with it what its threads would do.
class Rehearsal {
 public:
  Rehearsal() {
    const rlimit limit{largest_file, largest_file};
    CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    folder_ = "/dev/shm/penstock-fuzz-XXXXXX";
    CHECK(::mkdtemp(folder_.data()) != nullptr);
    const int file = ::open((folder_ + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat is{};
    CHECK(file >= 0 && ::fstat(file, &is) == 0);
    ::close(file);
    inode_ = is.st_ino;
    NodeOptions options;
    options.limits = {3, 3, 32 << 10, 3};
    node_ = std::make_shared<Node>(options);
    node_->roots_.push_back({folder_, ::open(folder_.c_str(), O_PATH | O_CLOEXEC)});
    node_->token_ = std::string(PENSTOCK_TOKEN_BYTES, 't');
    passed_ = {memory_file(window_bytes + PENSTOCK_MAILBOX_BYTES, F_SEAL_SHRINK),
               memory_file(window_bytes, 0), memory_file(4096, F_SEAL_SHRINK), memory_file(0, 0),
               ::open("/dev/null", O_RDWR | O_CLOEXEC)};
    baseline_ = open_descriptors();
  }

  ~Rehearsal() {
    ::unlink((folder_ + "/f").c_str());
    ::rmdir(folder_.c_str());
  }

  void run(Bytes bytes) {
    begin(bytes.byte());
    while (!bytes.empty()) act(bytes);
    end();
    if (++cases_ % cases_between_counts == 0) CHECK(open_descriptors() == baseline_);
  }

 private:
  struct End {
    int peer = -1;
    Connection* connection = nullptr;
  };

  void begin(std::uint8_t choice) {
    Settings settings;
    settings.scheduler = scheduler_names()[choice % scheduler_names().size()];
    settings.window = 1000;
    settings.servers = 2;
    settings.depth = 4;
    node_->configure(settings, 4096);
  }

  void act(Bytes& bytes) {
    const std::uint8_t what = bytes.byte();
    End& end = ends_[what % most_connections];
    switch (what / most_connections % 8) {
      case 0:
        if (end.peer < 0) connect(end, bytes.byte() % 2 == 0 ? Transport::local : Transport::tcp);
        break;
      case 1:
        hello(end, bytes);
        break;
      case 2:
        send(end, bytes.some(bytes.byte()), -1);
        break;
      case 3:
        open(end, bytes);
        break;
      case 4:
      case 5:
        transfer(end, bytes);
        break;
      case 6:
        serve();
        break;
      default:
        if (end.peer >= 0 && bytes.byte() % 4 == 0) hang_up(end);
        break;
    }
  }

  void connect(End& end, Transport transport) {
    std::array<int, 2> pair{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) == 0);
    auto connection = std::make_unique<Connection>(pair[0], transport, node_->own_identity_);
    end = {pair[1], connection.get()};
    node_->unidentified_.push_back(connection.get());
    node_->connections_.emplace(connection.get(), std::move(connection));
  }

  void hello(End& end, Bytes& bytes) {
    if (end.connection == nullptr) return;
    struct {
      penstock_request request;
      penstock_introduction introduction;
    } frame{};
    const std::uint8_t odd = bytes.byte();
    const bool local = end.connection->transport == Transport::local;
    frame.request = {PENSTOCK_WIRE_MAGIC, PENSTOCK_HELLO, 1, 0, 0, sizeof frame.introduction, 0};
    frame.introduction.session[0] = odd & 3;
    frame.introduction.window = local ? window_bytes : 0;
    std::memset(frame.introduction.token, odd == 255 ? 'u' : 't', sizeof frame.introduction.token);
    std::memset(frame.introduction.job, 'j',
                odd == 254 ? sizeof frame.introduction.job : 1 + (odd & 1));
    const int passed = local ? passed_[odd >= 250 ? odd % passed_.size() : 0] : -1;
    send(end, std::span(reinterpret_cast<const std::uint8_t*>(&frame), sizeof frame), passed);
  }

  void open(End& end, Bytes& bytes) {
    if (end.connection == nullptr) return;
    const std::uint8_t odd = bytes.byte();
    const bool local = end.connection->transport == Transport::local;
    const auto path = odd < 200 ? std::span(reinterpret_cast<const std::uint8_t*>("f"), 1)
                                : bytes.some(odd - 200u);
    const std::uint32_t flags = odd < 128 ? O_RDWR : bytes.word();
    penstock_request request{PENSTOCK_WIRE_MAGIC, PENSTOCK_OPEN, 2, odd == 199, inode_, 0, flags};
    if (!local) request.bytes = static_cast<std::uint32_t>(path.size());
    std::vector<std::uint8_t> frame(sizeof request);
    std::memcpy(frame.data(), &request, sizeof request);
    if (!local) frame.insert(frame.end(), path.begin(), path.end());
    send(end, frame, local ? passed_[odd < 128 ? 3 : odd % passed_.size()] : -1);
  }

  void transfer(End& end, Bytes& bytes) {
    if (end.connection == nullptr) return;
    const std::uint8_t kind = bytes.byte();
    penstock_request request{};
    request.magic = PENSTOCK_WIRE_MAGIC;
    request.operation = PENSTOCK_WRITE + kind % 5;
    request.number = 3;
    request.file = bytes.byte() % 4;
    // Near each other, so that they can be served together.
    request.offset = kind < 200 ? bytes.byte() * 64ull : std::uint64_t{bytes.word()} << 32;
    const bool data = request.operation == PENSTOCK_WRITE || request.operation == PENSTOCK_READ;
    request.bytes = !data ? kind / 250 : kind < 200 ? 64 : bytes.word() % (2 * window_bytes);
    request.flags = kind >= 240 ? bytes.byte() : 0;
    std::vector<std::uint8_t> frame(sizeof request);
    std::memcpy(frame.data(), &request, sizeof request);
    const bool follows =
        end.connection->transport == Transport::tcp && request.operation == PENSTOCK_WRITE;
    if (follows) frame.resize(frame.size() + request.bytes, kind);
    send(end, frame, -1);
  }

  void send(End& end, std::span<const std::uint8_t> data, int passed) {
    if (end.peer < 0 || data.empty()) return;
    send_frame(end.peer, data.data(), data.size(), passed, MSG_NOSIGNAL | MSG_DONTWAIT);
    input(*end.connection, EPOLLIN);
    tidy();
  }

  void input(Connection& connection, std::uint32_t events) {
    node_->arrivals_.clear();
    node_->input(connection, events);
    Node::Lock lock(node_->mutex_);
    node_->handed_over_ = true;  // no other thread is woken
    for (const auto& arrival : node_->arrivals_) {
      node_->arrive(*arrival.connection, arrival.outcome, now(), now());
    }
  }

  void serve() {
    {
      Node::Lock lock(node_->mutex_);
      node_->handed_over_ = true;
      bool served = false;
      while (node_->serve_next(lock)) served = true;
      if (!served && node_->stalled_.empty() && node_->resumed_.empty()) return;
    }
    for (End& end : ends_) {
      if (end.peer < 0) continue;
      take_replies(end);
      if (end.connection->stalled) input(*end.connection, EPOLLOUT);
    }
    std::vector<Connection*> resumed = std::exchange(node_->resumed_, {});
    for (Connection* connection : resumed) {
      if (connection->phase == Phase::idle) input(*connection, EPOLLIN);
    }
    tidy();
  }

  void take_replies(End& end) {
    static std::array<std::byte, 1 << 16> buffer;
    while (::recv(end.peer, buffer.data(), buffer.size(), MSG_DONTWAIT) ==
           static_cast<ssize_t>(buffer.size())) {
    }
  }

  void hang_up(End& end) {
    ::close(std::exchange(end.peer, -1));
    input(*end.connection, EPOLLIN | EPOLLHUP);
    tidy();
  }

  // Closes whom the node would close, and forgets those.
  void tidy() {
    Node::Lock lock(node_->mutex_);
    node_->close_doomed(lock);
    for (End& end : ends_) {
      if (end.connection == nullptr || node_->connections_.contains(end.connection)) continue;
      if (end.peer >= 0) ::close(end.peer);
      end = {};
    }
  }

  void end() {
    Settings settings = node_->settings();
    settings.scheduler = "fifo";  // twins may hold requests back
    node_->configure(settings, 4096);
    serve();
    for (End& end : ends_) {
      if (end.peer >= 0) hang_up(end);
    }
    serve();
    const Measurement left = node_->measure();
    CHECK(left.connections == 0 && left.sessions == 0 && left.files == 0 && left.queued == 0);
    CHECK(node_->unidentified_.empty() && node_->stalled_.empty() && node_->parked_.empty());
    CHECK(node_->doomed_.empty() && node_->chores_.empty() && node_->left_files_.empty());
    CHECK(node_->in_service_ == 0);
    for (const auto& [key, group] : node_->sessions_.groups()) CHECK(group->payload == 0);
  }

  std::shared_ptr<Node> node_;
  std::string folder_;
  std::uint64_t inode_ = 0;
  std::array<int, 5> passed_{};
  std::array<End, most_connections> ends_{};
  int baseline_ = 0;
  std::uint64_t cases_ = 0;
};

}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static penstock::Rehearsal rehearsal;
  rehearsal.run({data, size});
  return 0;
}
