// The I/O node with its threads, and its parser and calls without; built under ASan, UBSan and TSan
// by tests/native.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "privileges.hpp"
#include "test_client.hpp"

using namespace penstock;

namespace {

// Where writes stand still until they are let go: a file system that hangs.
constexpr off_t hanging = 1 << 30;

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool open = false;

  void pass() {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
    --inside;
  }

  void await(int count) {
    std::unique_lock lock(mutex);
    const auto there = [&] { return inside == count; };
    CHECK(changed.wait_for(lock, std::chrono::seconds(60), there));
  }

  void set(bool is_open) {
    const std::lock_guard lock(mutex);
    open = is_open;
    changed.notify_all();
  }
};

Gate gate;

}  // namespace

// In place of the C library's, for the whole program.
extern "C" ssize_t pwritev2(int descriptor, const iovec* vectors, int count, off_t offset,
                            int flags) {
  if (offset >= hanging) gate.pass();
  return ::syscall(SYS_pwritev2, descriptor, vectors, static_cast<unsigned long>(count), offset, 0l,
                   flags);
}

namespace {

Parser::Step feed(Parser& parser, const void* data, std::size_t bytes) {
  const auto space = parser.space();
  std::memcpy(space.data(), data, std::min(bytes, space.size()));
  return parser.arrived(bytes);
}

// Every cut of a frame into two pieces gives the same frame.
void frames_in_pieces() {
  std::array<std::byte, sizeof(penstock_request) + sizeof(penstock_introduction)> hello{};
  const penstock_request head = request(PENSTOCK_HELLO, sizeof(penstock_introduction));
  std::memcpy(hello.data(), &head, sizeof head);
  for (std::size_t cut = 1; cut < hello.size(); ++cut) {
    Parser parser;
    CHECK(feed(parser, hello.data(), cut) == Parser::Step::more);
    CHECK(feed(parser, hello.data() + cut, hello.size() - cut) == Parser::Step::frame);
    CHECK(parser.follows().size() == sizeof(penstock_introduction));
  }
}

// No byte behind a request goes unnoticed.
void a_second_request_is_an_error() {
  struct {
    penstock_request first = request(PENSTOCK_FSYNC);
    std::byte more{};
  } early;
  Parser alone;
  alone.introduce();
  CHECK(feed(alone, &early, sizeof(penstock_request) + 1) == Parser::Step::wrong);
  Parser remote;
  remote.introduce();
  std::array<std::byte, 8> payload{};
  const penstock_request write = request(PENSTOCK_WRITE, payload.size());
  CHECK(feed(remote, &write, sizeof write) == Parser::Step::payload);
  CHECK(remote.place(payload.data()) == Parser::Step::more);
  CHECK(remote.space().size() == payload.size() && remote.spare() != nullptr);
  CHECK(remote.arrived(payload.size()) == Parser::Step::frame);
  CHECK(remote.arrived(1) == Parser::Step::wrong);
}

void payload_that_came_with_its_head() {
  struct {
    penstock_request head = request(PENSTOCK_WRITE, 4);
    char data[4] = {'d', 'a', 't', 'a'};
  } frame;
  Parser parser;
  parser.introduce();
  CHECK(feed(parser, &frame, sizeof(penstock_request) + 4) == Parser::Step::payload);
  std::array<std::byte, 4> payload{};
  CHECK(parser.place(payload.data()) == Parser::Step::frame);
  CHECK(std::memcmp(payload.data(), "data", 4) == 0);
}

std::shared_ptr<OpenFile> memory_file(int& descriptor) {
  descriptor = ::memfd_create("file", MFD_CLOEXEC);
  CHECK(descriptor >= 0);
  return std::make_shared<OpenFile>(descriptor, FileNumbers::Key{},
                                    std::make_shared<FileNumbers>());
}

// One call for all; where it comes to a halt, each request has what a call of its own would give.
void a_batch_is_divided_in_order() {
  int descriptor = -1;
  const auto file = memory_file(descriptor);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::array<Exchange, 4> exchanges;
  std::array<std::array<std::byte, 40>, 4> data;
  Batch batch;
  for (std::size_t k = 0; k < exchanges.size(); ++k) {
    data[k].fill(static_cast<std::byte>(k + 1));
    exchanges[k].open_file = file;
    exchanges[k].data = data[k].data();
    exchanges[k].offset = 40 * k;
    exchanges[k].bytes = 40;
    exchanges[k].kind = Kind::write;
    batch.push_back(&exchanges[k]);
  }
  serve(batch, 0);
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(exchanges[0].result == 40 && exchanges[1].result == 40 && exchanges[2].result == 20);
  CHECK(exchanges[3].result == -EFBIG);
  for (Exchange& exchange : exchanges) exchange.kind = Kind::read;
  serve(batch, 0);
  CHECK(exchanges[2].result == 20 && exchanges[3].result == 0);
  CHECK(data[1][39] == std::byte{2} && data[2][19] == std::byte{3});
}

// Files of a session: handles are reused, and belong to that session alone.
void handles_of_a_session() {
  Session session({1, 2});
  int descriptor = -1;
  const auto file = memory_file(descriptor);
  CHECK(session.add(file) == 0 && session.add(file) == 1);
  CHECK(session.remove(0) == file && session.remove(0) == nullptr);
  CHECK(session.file(0) == nullptr && session.file(1) == file && session.file(99) == nullptr);
  CHECK(session.add(file) == 0);
}

// The descriptors of one inode have one number, and a later file has another.
void file_numbers() {
  FileNumbers numbers;
  const FileNumbers::Key one{1, 2, 3};
  const std::uint64_t number = numbers.acquire(one);
  CHECK(numbers.acquire(one) == number);
  CHECK(numbers.acquire({1, 2, 4}) != number);
  numbers.release(one);
  numbers.release(one);
  CHECK(numbers.acquire(one) != number);
}

// A thread that reads what clients send opens nothing else, as root either.
void a_confined_thread_opens_files_below_its_roots_alone() {
  std::string folder = "/dev/shm/penstock-test-XXXXXX";
  CHECK(::mkdtemp(folder.data()) != nullptr);
  const std::string inside = folder + "/f";
  ::close(::open(inside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const int root = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
  std::thread([&] {
    if (!confine_thread({root})) {
      std::puts("this kernel has no Landlock: not tested");
      return;
    }
    const auto error = [](const char* path, int flags) {
      const int descriptor = ::open(path, flags | O_CLOEXEC, 0600);
      if (descriptor >= 0) ::close(descriptor);
      return descriptor >= 0 ? 0 : errno;
    };
    CHECK(error(inside.c_str(), O_RDWR) == 0);
    CHECK(error("/etc/passwd", O_RDONLY) == EACCES && error("/dev/null", O_WRONLY) == EACCES);
    CHECK(error((folder + "/new").c_str(), O_WRONLY | O_CREAT) == EACCES);
    CHECK(::unlink(inside.c_str()) != 0 && errno == EACCES);
    std::thread([&] { CHECK(error("/etc/passwd", O_RDONLY) == EACCES); }).join();
  }).join();
  const int other = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  CHECK(other >= 0);
  ::close(other);
  ::close(root);
  ::unlink(inside.c_str());
  ::rmdir(folder.c_str());
}

// A node that runs, with a file for clients on other hosts.
struct Running {
  explicit Running(std::uint32_t depth) {
    CHECK(::mkdtemp(where.root.data()) != nullptr);
    file = ::open((where.root + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    NodeOptions options;
    options.settings.depth = depth;
    node = std::make_shared<Node>(options);
    where.port = node->listen_tcp("127.0.0.1", 0, where.token, {where.root});
    node->start();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    CHECK(node->drain(60));
    CHECK(node->stop(60));
    ::close(file);
    ::unlink((where.root + "/f").c_str());
    ::rmdir(where.root.c_str());
  }

  // Until that holds of a measurement.
  template <class Holds>
  void await(Holds holds) {
    const Time end = now() + 60'000'000'000;
    while (!holds(node->measure())) {
      CHECK(now() < end);
      std::this_thread::yield();
    }
  }

  Carried::Where where{0, "/dev/shm/penstock-test-XXXXXX", std::string(PENSTOCK_TOKEN_BYTES, 't')};
  std::shared_ptr<Node> node;
  int file = -1;
};

// Calls that hang keep their own clients waiting, and no others as long as there is depth; an end
// comes only after them.
void calls_that_hang_delay_no_other_client() {
  gate.set(false);
  Running running(3);
  Carried first(running.where, 1);
  Carried second(running.where, 2);
  Carried third(running.where, 3);
  CHECK(third.call(PENSTOCK_WRITE, 0, 4096) == 4096);
  first.ask(PENSTOCK_WRITE, hanging, 8);
  gate.await(1);
  second.ask(PENSTOCK_WRITE, hanging + 4096, 8);
  gate.await(2);
  for (int k = 0; k < 50; ++k) CHECK(third.call(PENSTOCK_WRITE, 0, 4096) == 4096);
  CHECK(!running.node->drain(0.05));
  gate.set(true);
  CHECK(first.answer() == 8 && second.answer() == 8);
}

// Calls of one host that hang, more than there are places, hold up nobody else: neither calls nor
// greetings. They keep a bounded number of threads, and go on when they can.
void calls_of_one_host_that_hang_hold_up_no_other_host() {
  gate.set(false);
  Running running(2);
  std::vector<std::unique_ptr<Carried>> hostile;
  for (std::uint64_t k = 0; k < 12; ++k)
    hostile.push_back(std::make_unique<Carried>(running.where, k + 1, 2));
  for (std::uint64_t k = 0; k < 12; ++k)
    hostile[k]->ask(PENSTOCK_WRITE, static_cast<std::uint64_t>(hanging) + k * 8192, 8);
  Carried honest(running.where, 100);
  for (int k = 0; k < 50; ++k) CHECK(honest.call(PENSTOCK_WRITE, 0, 4096) == 4096);
  CHECK(!running.node->drain(0.05));
  gate.set(true);
  for (const auto& client : hostile) CHECK(client->answer() == 8);
}

// With one call at a time, what waits behind one that hangs is dropped if its client goes.
void requests_of_gone_clients_are_not_begun() {
  gate.set(false);
  Running running(1);
  Carried first(running.where, 1);
  {
    Carried second(running.where, 2);
    first.ask(PENSTOCK_WRITE, hanging, 8);
    gate.await(1);
    second.data[0] = 1;
    second.ask(PENSTOCK_WRITE, 0, 8);
    running.await([](const Measurement& measured) { return measured.queued == 1; });
  }
  // What waited for less is begun unless the poller happened to see that its client had gone.
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  gate.set(true);
  CHECK(first.answer() == 8);
  running.await([](const Measurement& measured) { return measured.connections == 1; });
  CHECK(running.node->measure().counts.dropped == 1);
  std::uint64_t written = 0;
  CHECK(::pread(running.file, &written, sizeof written, 0) == sizeof written && written == 0);
}

// What each of several clients wrote is what it reads, while schedulers change, some requests are
// long and others short, and clients come and go.
void many_clients_and_changing_schedulers() {
  Running running(3);
  const auto& node = running.node;
  constexpr int clients = 4;
  constexpr int rounds = 60;
  std::atomic<int> writing{clients};
  std::vector<std::thread> threads;
  for (std::uint64_t k = 0; k < clients; ++k) {
    threads.emplace_back([&, k] {
      for (std::uint64_t round = 0; round < rounds;) {
        Carried client(running.where, k + 1);
        for (int again = 0; again < 20; ++again, ++round) {
          const std::uint32_t length = round % 3 == 0 ? Carried::bytes : 4096;
          const std::uint64_t at = (round * clients + k) * Carried::bytes;
          for (std::uint32_t w = 0; w < length / 8; ++w) client.data[w] = at + w;
          CHECK(client.call(PENSTOCK_WRITE, at, length) == length);
          std::memset(client.data, 0, length);
          CHECK(client.call(PENSTOCK_READ, at, length) == length);
          for (std::uint32_t w = 0; w < length / 8; ++w) CHECK(client.data[w] == at + w);
          if (round % 8 == 0) CHECK(client.call(PENSTOCK_FSYNC) == 0);
        }
        CHECK(client.call(PENSTOCK_CLOSE) == 0);
      }
      --writing;
    });
  }
  std::size_t turns = 0;
  do {
    Settings settings = node->settings();
    settings.scheduler = scheduler_names()[turns++ % scheduler_names().size()];
    settings.window = 100'000;
    settings.servers = 2;
    settings.depth = 1 + turns % 4;
    node->configure(settings, 1 << 20);
    node->weigh({{"a", 1.0 + static_cast<double>(turns % 3)}});
    CHECK(node->measure().counts.refused == 0);
    std::this_thread::yield();
  } while (writing > 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(node->drain(20));
  const Measurement measured = node->measure();
  CHECK(measured.connections == 0 && measured.sessions == 0 && measured.files == 0);
  CHECK(measured.counts.writes == clients * rounds && measured.counts.reads == clients * rounds);
  CHECK(measured.counts.errors == 0 && measured.counts.dropped == 0);
}

}  // namespace

int main() {
  std::signal(SIGXFSZ, SIG_IGN);
  frames_in_pieces();
  a_second_request_is_an_error();
  payload_that_came_with_its_head();
  a_batch_is_divided_in_order();
  handles_of_a_session();
  file_numbers();
  a_confined_thread_opens_files_below_its_roots_alone();
  many_clients_and_changing_schedulers();
  calls_that_hang_delay_no_other_client();
  requests_of_gone_clients_are_not_begun();
  calls_of_one_host_that_hang_hold_up_no_other_host();
  std::puts("node: all hold");
}
