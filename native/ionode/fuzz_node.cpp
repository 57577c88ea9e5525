// An I/O node driven by hand, without threads: what clients of its host and of others may send, in
// any order, over several connections, and what the pages of the former may say, also while they
// are read: another thread writes into them. `make fuzz` builds it with libFuzzer and ASan.
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
#include <span>

#include "test_client.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t usual_bytes = 8 << 10;
constexpr rlim_t largest_file = 1 << 20;
constexpr std::size_t most_connections = 4;
constexpr int cases_between_counts = 4096;
constexpr Time millisecond = 1'000'000;

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

// Writes words into a page for as long as there is one. What it writes differs from run to run;
// what must hold does not.
class Scribbler {
 public:
  Scribbler() {
    std::thread([this] { scribble(); }).detach();
  }

  void use(penstock_permit_page* page) {
    const std::lock_guard lock(mutex_);
    page_ = page;
    changed_.notify_one();
  }

 private:
  void scribble() {
    std::uint64_t state = 1;
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return page_ != nullptr; });
      for (int k = 0; k < 64; ++k) {
        state = state * 6364136223846793005 + 1442695040888963407;
        auto* words = reinterpret_cast<std::uint32_t*>(&page_->permit[state >> 62]);
        const std::size_t word = (state >> 40) % (128 / sizeof *words);
        std::atomic_ref(words[word]).store(static_cast<std::uint32_t>(state >> 20));
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  penstock_permit_page* page_ = nullptr;
};

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
    options.limits = {3, 3, 32 << 10, 3, 8, 4, 6, 64 << 10, 16};
    node_ = std::make_shared<Node>(options);
    node_->server_.add_root({folder_, ::open(folder_.c_str(), O_PATH | O_CLOEXEC)});
    node_->intake_.require(std::string(PENSTOCK_TOKEN_BYTES, 't'));
    null_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
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
  struct Process {
    int peer = -1;
    Caller* caller = nullptr;
    penstock_permit_page* page = nullptr;
  };

  void begin(std::uint8_t choice) {
    Settings settings;
    settings.scheduler = scheduler_names()[choice % scheduler_names().size()];
    settings.window = 1000;
    settings.servers = 2;
    settings.depth = 4;
    settings.shares = (choice & 128) != 0 ? Shares::concurrency : Shares::bytes;
    node_->configure(settings, 4096);
    node_->weigh({{"j", 2.0}});
  }

  void act(Bytes& bytes) {
    const std::uint8_t what = bytes.byte();
    if (what >= 128) {
      act_as_process(processes_[what % most_connections], what / most_connections % 8, bytes);
      return;
    }
    End& end = ends_[what % most_connections];
    switch (what / most_connections % 8) {
      case 0:
        if (end.peer < 0) connect(end, bytes.byte());
        break;
      case 1:
        hello(end, bytes);
        break;
      case 2:
        send(end, bytes.some(bytes.byte()));
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

  // A client of this host. What its descriptors and page say is arbitrary.
  void act_as_process(Process& process, int what, Bytes& bytes) {
    switch (what) {
      case 0:
        if (process.peer < 0) connect(process, bytes.byte());
        break;
      case 1: {
        penstock_permit_hello hello{PENSTOCK_PERMIT_MAGIC, 1, {0}};
        const std::uint8_t odd = bytes.byte();
        if (odd == 255) hello.magic = bytes.word();
        std::memset(hello.job, odd == 254 ? 7 : 'j', odd == 253 ? sizeof hello.job : 1 + (odd & 7));
        send(process, &hello, sizeof hello, odd == 252);
        take_page(process);
        break;
      }
      case 2: {
        const auto raw = bytes.some(bytes.byte());
        send(process, raw.data(), raw.size(), false);
        break;
      }
      case 3:
      case 4: {
        const std::uint8_t odd = bytes.byte();
        penstock_permit_message message{
            PENSTOCK_ASK, odd % 4u, ++numbers_, odd / 4u % 4u, 1, 0, 64};
        if (odd >= 128) message.offset = std::uint64_t{bytes.word()} << 32 | bytes.byte();
        if (odd >= 192) message.bytes = std::uint64_t{bytes.word()} << 32 | bytes.word();
        if (odd >= 240) message.permit = bytes.word();
        send(process, &message, sizeof message, odd == 255);
        break;
      }
      case 5: {
        const std::uint8_t permit = bytes.byte();
        const penstock_permit_message message{
            PENSTOCK_GIVE_BACK, permit % 4u, numbers_ - permit / 64u, 0, 0, 0, 0};
        send(process, &message, sizeof message, false);
        break;
      }
      case 6:
        if (process.page == nullptr) break;
        if (bytes.byte() % 8 == 0) {
          scribbler_.use(process.page);
        } else {
          auto* words = reinterpret_cast<std::uint32_t*>(&process.page->permit[bytes.byte() % 4]);
          words[bytes.byte() % 64] = bytes.word();
        }
        break;
      default:
        if (process.peer >= 0 && bytes.byte() % 4 == 0) hang_up(process);
        break;
    }
  }

  static Origin origin(std::uint8_t number) {
    Origin origin;
    origin.name[0] = static_cast<std::byte>(number % 2);
    return origin;
  }

  void connect(Process& process, std::uint8_t user) {
    Quota::Share share = node_->shared_.descriptors->take(origin(user));
    if (!share) return;
    std::array<int, 2> pair{};
    CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) ==
          0);
    const Lock lock(node_->shared_.mutex);
    Caller& caller = node_->desk_.let_in(lock, pair[0], user % 2, origin(user), std::move(share));
    process = {pair[1], &caller, nullptr};
    node_->poller_.add_stranger(lock, caller, origin(user));
  }

  void send(Process& process, const void* data, std::size_t length, bool pass) {
    if (process.peer < 0 || length == 0) return;
    iovec part{const_cast<void*>(data), length};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (pass) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_len = CMSG_LEN(sizeof(int));
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      std::memcpy(CMSG_DATA(header), &null_, sizeof null_);
    }
    ::sendmsg(process.peer, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    read_messages(process);
  }

  void take_page(Process& process) {
    if (process.peer < 0 || process.page != nullptr) return;
    penstock_permit_welcome welcome{};
    iovec part{&welcome, sizeof welcome};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(process.peer, &message, MSG_DONTWAIT) != sizeof welcome) return;
    int page = -1;
    std::memcpy(&page, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof page);
    void* address =
        ::mmap(nullptr, sizeof(penstock_permit_page), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    CHECK(address != MAP_FAILED);
    ::close(page);
    process.page = static_cast<penstock_permit_page*>(address);
  }

  void read_messages(Process& process) {
    node_->desk_.hear(*process.caller);
    go_round();
    tidy();
  }

  void go_round() {
    for (Time now = penstock::now(); node_->desk_.ready_at() != never; now += millisecond) {
      node_->desk_.read(now);
      Lock lock(node_->shared_.mutex);
      node_->desk_.act(lock, now);
    }
  }

  void hang_up(Process& process) {
    ::close(std::exchange(process.peer, -1));
    read_messages(process);
  }

  void forget(Process& process) {
    if (process.peer >= 0) ::close(process.peer);
    if (process.page != nullptr) {
      scribbler_.use(nullptr);
      ::munmap(process.page, sizeof *process.page);
    }
    process = {};
  }

  void connect(End& end, std::uint8_t host) {
    Quota::Share share = node_->shared_.descriptors->take(origin(host));
    if (!share) return;
    std::array<int, 2> pair{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) == 0);
    const Lock lock(node_->shared_.mutex);
    Connection& connection = node_->intake_.let_in(lock, pair[0], origin(host), std::move(share));
    end = {pair[1], &connection};
    node_->poller_.add_stranger(lock, connection, origin(host));
  }

  void hello(End& end, Bytes& bytes) {
    if (end.connection == nullptr) return;
    struct {
      penstock_request request;
      penstock_introduction introduction;
    } frame{};
    const std::uint8_t odd = bytes.byte();
    frame.request = {PENSTOCK_WIRE_MAGIC, PENSTOCK_HELLO, 1, 0, 0, sizeof frame.introduction, 0};
    frame.introduction.session[0] = odd & 3;
    std::memset(frame.introduction.job, 'j',
                odd == 254 ? sizeof frame.introduction.job : 1 + (odd & 1));
    send(end, std::span(reinterpret_cast<const std::uint8_t*>(&frame), sizeof frame));
    if (odd != 253) prove(end, odd == 255);
  }

  // What the client would compute from the reply to its greeting.
  void prove(End& end, bool wrongly) {
    serve();
    if (end.connection == nullptr) return;
    struct {
      penstock_request request;
      std::uint8_t proof[PENSTOCK_DIGEST_BYTES];
    } frame{};
    frame.request = {PENSTOCK_WIRE_MAGIC, PENSTOCK_PROVE, 2, 0, 0, sizeof frame.proof, 0};
    node_->intake_.prove(end.connection->transcript, PENSTOCK_ROLE_CLIENT, frame.proof);
    if (wrongly) frame.proof[0] ^= 1;
    send(end, std::span(reinterpret_cast<const std::uint8_t*>(&frame), sizeof frame));
  }

  void open(End& end, Bytes& bytes) {
    if (end.connection == nullptr) return;
    const std::uint8_t odd = bytes.byte();
    const auto path = odd < 200 ? std::span(reinterpret_cast<const std::uint8_t*>("f"), 1)
                                : bytes.some(odd - 200u);
    const std::uint32_t flags = odd < 128 ? O_RDWR : bytes.word();
    penstock_request request{PENSTOCK_WIRE_MAGIC, PENSTOCK_OPEN, 2, odd == 199, inode_, 0, flags};
    request.bytes = static_cast<std::uint32_t>(path.size());
    std::vector<std::uint8_t> frame(sizeof request);
    std::memcpy(frame.data(), &request, sizeof request);
    frame.insert(frame.end(), path.begin(), path.end());
    send(end, frame);
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
    request.bytes = !data ? kind / 250 : kind < 200 ? 64 : bytes.word() % (2 * usual_bytes);
    request.flags = kind >= 240 ? bytes.byte() : 0;
    std::vector<std::uint8_t> frame(sizeof request);
    std::memcpy(frame.data(), &request, sizeof request);
    if (request.operation == PENSTOCK_WRITE) frame.resize(frame.size() + request.bytes, kind);
    send(end, frame);
  }

  void send(End& end, std::span<const std::uint8_t> data) {
    if (end.peer < 0 || data.empty()) return;
    ::send(end.peer, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    input(*end.connection, EPOLLIN);
    tidy();
  }

  void input(Connection& connection, std::uint32_t events) {
    node_->intake_.input(connection, events);
    const Lock lock(node_->shared_.mutex);
    node_->crew_.handed_over_ = true;  // no other thread is woken
    node_->intake_.arrive(lock, now(), now());
  }

  void serve() {
    {
      Lock lock(node_->shared_.mutex);
      node_->crew_.handed_over_ = true;
      node_->queues_.make_room(lock, now());
      bool served = false;
      while (node_->serve_next(lock)) served = true;
      if (!served && node_->intake_.stalled_.empty() && node_->intake_.resumed_.empty()) return;
    }
    for (End& end : ends_) {
      if (end.peer < 0) continue;
      take_replies(end);
      if (end.connection->stalled) input(*end.connection, EPOLLOUT);
    }
    std::vector<Connection*> resumed = std::exchange(node_->intake_.resumed_, {});
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
    go_round();
    Lock lock(node_->shared_.mutex);
    node_->poller_.close_doomed(lock);
    for (Process& process : processes_) {
      if (process.caller == nullptr || node_->desk_.callers_.contains(process.caller)) continue;
      forget(process);
    }
    for (End& end : ends_) {
      if (end.connection == nullptr || node_->intake_.connections_.contains(end.connection))
        continue;
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
    for (Process& process : processes_) {
      if (process.peer >= 0) hang_up(process);
    }
    serve();
    tidy();
    const Measurement left = node_->measure();
    const Lock lock(node_->shared_.mutex);
    CHECK(left.connections == 0 && left.sessions == 0 && left.files == 0 && left.queued == 0);
    CHECK(node_->desk_.callers_.empty());
    CHECK(node_->shared_.descriptors->taken() == 0 && node_->desk_.processes_->taken() == 0);
    CHECK(node_->desk_.permits_->taken() == 0 && node_->intake_.memory_->taken() == 0);
    CHECK(node_->shared_.strangers(lock).empty() && node_->desk_.ready_at() == never &&
          node_->intake_.stalled_.empty());
    CHECK(node_->intake_.parked_.empty() && node_->intake_.doomed_.empty());
    CHECK(node_->queues_.empty(lock));
    for (const auto& [key, group] : node_->shared_.sessions(lock).groups())
      CHECK(group->payload == 0);
  }

  std::shared_ptr<Node> node_;
  std::string folder_;
  std::uint64_t inode_ = 0;
  int null_ = -1;
  std::uint32_t numbers_ = 0;
  Scribbler& scribbler_ = *new Scribbler;  // its thread has no end
  std::array<End, most_connections> ends_{};
  std::array<Process, most_connections> processes_{};
  int baseline_ = 0;
  std::uint64_t cases_ = 0;
};

}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static penstock::Rehearsal rehearsal;
  rehearsal.run({data, size});
  return 0;
}
