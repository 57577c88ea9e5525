// A bare server, one thread a connection, bytes through the socket into a file; and clients that
// write through it, or through an I/O node. Driven by ionode.py.
//
//   ionode_load serve SOCKET FILE
//   ionode_load bare|node SOCKET FILE CLIENTS BYTES SECONDS     prints MB/s

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "wire.h"

namespace {

constexpr std::uint64_t region = 16 << 20;  // bytes of the file that one client writes over and over

struct Head {
  std::uint64_t offset;
  std::uint64_t bytes;
};

void need(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

void move_all(ssize_t (*call)(int, void*, std::size_t), int descriptor, void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = call(descriptor, static_cast<char*>(data) + done, bytes - done);
    if (moved <= 0) throw std::string("gone");
    done += static_cast<std::size_t>(moved);
  }
}

ssize_t receive(int descriptor, void* data, std::size_t bytes) { return ::recv(descriptor, data, bytes, 0); }
ssize_t transmit(int descriptor, void* data, std::size_t bytes) {
  return ::send(descriptor, data, bytes, MSG_NOSIGNAL);
}

sockaddr_un at(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  return address;
}

void serve(const char* path, const char* file) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = at(path);
  need(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, path);
  need(::listen(listener, 64) == 0, path);
  std::puts("serves");
  std::fflush(stdout);
  for (;;) {
    const int client = ::accept(listener, nullptr, nullptr);
    need(client >= 0, "accept");
    std::thread([client, file] {
      const int target = ::open(file, O_RDWR);
      std::vector<char> data(PENSTOCK_LARGEST);
      try {
        for (;;) {
          Head head{};
          move_all(receive, client, &head, sizeof head);
          move_all(receive, client, data.data(), head.bytes);
          std::int64_t written = ::pwrite(target, data.data(), head.bytes, static_cast<off_t>(head.offset));
          move_all(transmit, client, &written, sizeof written);
        }
      } catch (const std::string&) {
        ::close(client);
        ::close(target);
      }
    }).detach();
  }
}

int connected(const char* path) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = at(path);
  need(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, path);
  return descriptor;
}

void send_with(int descriptor, const void* data, std::size_t bytes, int passed) {
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  need(::sendmsg(descriptor, &message, 0) == static_cast<ssize_t>(bytes), "sendmsg");
}

std::int64_t reply_of(int descriptor) {
  penstock_reply reply{};
  move_all(receive, descriptor, &reply, sizeof reply);
  return reply.result;
}

// A connection to an I/O node with the file open.
struct Forwarded {
  int descriptor;
  char* window;
  std::uint32_t file;

  Forwarded(const char* path, const char* name, std::uint64_t session) : descriptor(connected(path)) {
    const int memory = ::memfd_create("window", MFD_ALLOW_SEALING);
    need(::ftruncate(memory, PENSTOCK_LARGEST) == 0 && ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "memfd");
    window = static_cast<char*>(
        ::mmap(nullptr, PENSTOCK_LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    struct {
      penstock_request request;
      penstock_introduction introduction;
    } hello{};
    hello.request = {PENSTOCK_WIRE_MAGIC, PENSTOCK_HELLO, 0, 0, 0, sizeof hello.introduction, 0};
    hello.introduction.session[0] = session;
    hello.introduction.window = PENSTOCK_LARGEST;
    std::strcpy(hello.introduction.job, "load");
    send_with(descriptor, &hello, sizeof hello, memory);
    need(reply_of(descriptor) == 0, "HELLO");
    const penstock_request open{PENSTOCK_WIRE_MAGIC, PENSTOCK_OPEN, 1, 0, 0, 0, O_RDWR};
    const int target = ::open(name, O_RDWR);
    send_with(descriptor, &open, sizeof open, target);
    file = static_cast<std::uint32_t>(reply_of(descriptor));
  }

  std::int64_t write(const char* data, std::uint64_t offset, std::uint32_t bytes) const {
    std::memcpy(window, data, bytes);
    penstock_request request{PENSTOCK_WIRE_MAGIC, PENSTOCK_WRITE, 2, file, offset, bytes, 0};
    move_all(transmit, descriptor, &request, sizeof request);
    return reply_of(descriptor);
  }
};

struct Bare {
  int descriptor;

  Bare(const char* path, const char*, std::uint64_t) : descriptor(connected(path)) {}

  std::int64_t write(const char* data, std::uint64_t offset, std::uint32_t bytes) const {
    Head head{offset, bytes};
    iovec parts[] = {{&head, sizeof head}, {const_cast<char*>(data), bytes}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    need(::sendmsg(descriptor, &message, 0) == static_cast<ssize_t>(sizeof head + bytes), "sendmsg");
    std::int64_t written = 0;
    move_all(receive, descriptor, &written, sizeof written);
    return written;
  }
};

template <class To>
double load(const char* path, const char* file, int clients, std::uint32_t bytes, double seconds) {
  std::atomic<std::uint64_t> moved{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int k = 0; k < clients; ++k) {
    threads.emplace_back([&, k] {
      const To to(path, file, static_cast<std::uint64_t>(k) + 1);
      const std::vector<char> data(bytes, static_cast<char>(k));
      const std::uint64_t base = static_cast<std::uint64_t>(k) * region;
      std::uint64_t done = 0;
      for (std::uint64_t at = 0; !stop.load(std::memory_order_relaxed); at = (at + bytes) % region) {
        need(to.write(data.data(), base + at, bytes) == bytes, "write");
        done += bytes;
      }
      moved += done;
    });
  }
  const auto began = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return static_cast<double>(moved) / took.count() / 1e6;
}

}  // namespace

int main(int count, char** words) {
  if (count == 4 && std::strcmp(words[1], "serve") == 0) serve(words[2], words[3]);
  if (count != 7) return 2;
  const bool bare = std::strcmp(words[1], "bare") == 0;
  const double speed = (bare ? load<Bare> : load<Forwarded>)(
      words[2], words[3], std::atoi(words[4]), static_cast<std::uint32_t>(std::atoi(words[5])), std::atof(words[6]));
  std::printf("%.1f\n", speed);
}
