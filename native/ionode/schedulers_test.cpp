// The schedulers' state equations; built under ASan, UBSan and TSan by tests/native. That each does
// what its twin in Python does is tested by tests/parity/test_schedulers.py.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <new>
#include <random>
#include <set>

#include "check.hpp"
#include "stripe_map.hpp"
#include "user_queue.hpp"

namespace {

std::size_t allocations = 0;

}  // namespace

// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace penstock;

namespace {

std::unique_ptr<UserQueue> named(const std::string& name, std::uint32_t io_node = 0) {
  Settings settings;
  settings.scheduler = name;
  settings.window = 10;
  settings.quantum = 100;
  settings.aggregation = 200;
  settings.servers = 3;
  settings.io_node = io_node;
  return make_scheduler(settings);
}

Request at(std::uint64_t offset, std::uint32_t bytes) {
  Request request;
  request.offset = offset;
  request.bytes = bytes;
  return request;
}

// A batch is one vectored call: contiguous exactly, of one file, kind and group, within the limit.
void check_batch(const Batch& batch, std::uint64_t limit) {
  CHECK(batch.size() <= 1 || (batch.front()->kind != Kind::sync && batch.bytes() <= limit));
  CHECK(batch.size() <= largest_batch);
  for (std::size_t k = 1; k < batch.size(); ++k) {
    CHECK(batch[k]->file == batch[0]->file && batch[k]->kind == batch[0]->kind);
    CHECK(batch[k]->group == batch[0]->group);
    CHECK(batch[k]->offset == batch[k - 1]->end());
  }
}

Request drawn(std::mt19937& random, Time now) {
  const auto upto = [&](unsigned most) {
    return static_cast<std::uint32_t>(random() % (most + 1));
  };
  Request request;
  request.arrived = now;
  request.file = upto(2);
  request.kind = static_cast<Kind>(upto(9) == 0 ? 2 : upto(1));
  request.offset = request.kind == Kind::sync ? 0 : 30 * upto(12);
  request.bytes = request.kind == Kind::sync ? 0 : 30 * upto(9) / (1 + upto(2));
  request.server = upto(4);
  request.group = upto(3);
  return request;
}

// Under random operations all that was added comes out exactly once; `take` has something exactly
// when `ready_at` says so, and then at the time that it named; a drain is in the order of arrival.
void everything_comes_out_once(const std::string& name) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    auto scheduler = named(name, round % 3);
    std::deque<Request> requests;
    std::set<const Request*> inside;
    Time now = random() % 100;
    for (int step = 0; step < 150; ++step) {
      now += random() % 8;
      if (random() % 2 == 0) {
        requests.push_back(drawn(random, now));
        scheduler->add(requests.back());
        inside.insert(&requests.back());
      } else {
        const Time ready = scheduler->ready_at(now);
        const Batch batch = scheduler->take(now);
        CHECK((ready <= now) == !batch.empty());
        CHECK((ready == never) == inside.empty());
        CHECK(name == "twins" || inside.empty() || ready == now);  // only twins is ever idle
        check_batch(batch, 200);
        for (const Request* request : batch) CHECK(inside.erase(request) == 1);
      }
      CHECK(scheduler->size() == inside.size());
    }
    if (round % 2 == 0) {
      const auto drained = scheduler->drain();
      CHECK(drained.size() == inside.size());
      for (std::size_t k = 1; k < drained.size(); ++k) {
        CHECK(drained[k - 1]->number < drained[k]->number);
      }
      CHECK(scheduler->size() == 0 && scheduler->ready_at(now) == never);
      continue;
    }
    while (!inside.empty()) {
      now = std::max(now, scheduler->ready_at(now));
      const Batch batch = scheduler->take(now);
      CHECK(!batch.empty());  // ready_at kept its word
      for (const Request* request : batch) CHECK(inside.erase(request) == 1);
    }
    CHECK(scheduler->size() == 0 && scheduler->take(now).empty());
  }
}

// Once the ring is as long as the queue gets, requests come and go without a single allocation.
void fifo_takes_no_memory(std::uint64_t groups) {
  auto scheduler = named("fifo");
  std::vector<Request> requests(100 * groups);
  for (std::size_t k = 0; k < requests.size(); ++k) requests[k].group = k % groups;
  const auto pass = [&] {
    for (Request& request : requests) scheduler->add(request);
    for (std::size_t k = 0; k < requests.size(); ++k) {
      CHECK(scheduler->take(0).front() == &requests[k]);
    }
  };
  pass();
  const std::size_t before = allocations;
  for (int repeat = 0; repeat < 100; ++repeat) pass();
  CHECK(allocations == before);
}

// Of backlogged groups each gets its weight's share of the cost, within one of the largest batches
// of either (Goyal et al. 1997, theorem 1): |W_f / w_f - W_g / w_g| <= l_f / w_f + l_g / w_g.
void shares_follow_weights() {
  std::mt19937 random(3);
  const double weight[] = {1.0, 2.5, 4.0};
  auto queue = named("time-order");
  for (std::uint64_t group = 0; group < 3; ++group) queue->weigh(0, group, weight[group]);
  std::deque<Request> requests;
  const auto feed = [&](std::uint64_t group) {
    requests.push_back(at(1'000'000 * requests.size(), 1 + random() % 60'000));
    requests.back().group = group;
    queue->add(requests.back());
  };
  for (std::uint64_t group = 0; group < 3; ++group) {
    for (int k = 0; k < 4; ++k) feed(group);
  }
  double served[] = {0.0, 0.0, 0.0};
  const double largest = 60'000.0 + FairQueue::call_cost;
  for (int step = 0; step < 4000; ++step) {
    const Batch batch = queue->take(0);
    const std::uint64_t group = batch.front()->group;
    served[group] += static_cast<double>(batch.bytes() + FairQueue::call_cost);
    feed(group);
    for (int f = 0; f < 3; ++f) {
      for (int g = 0; g < f; ++g) {
        CHECK(std::abs(served[f] / weight[f] - served[g] / weight[g]) <=
              largest / weight[f] + largest / weight[g]);
      }
    }
  }
}

// A group that was away has saved nothing up: it shares equally from when it comes back.
void absence_is_not_saved() {
  auto queue = named("fifo");
  std::deque<Request> requests;
  const auto feed = [&](std::uint64_t group) {
    requests.push_back(at(0, 1000));
    requests.back().group = group;
    queue->add(requests.back());
  };
  feed(1);
  feed(1);
  CHECK(queue->take(0).front()->group == 1);
  for (int k = 0; k < 1000; ++k) {
    feed(1);
    CHECK(queue->take(0).front()->group == 1);
  }
  for (int k = 0; k < 20; ++k) {
    feed(1);
    feed(2);
  }
  int of_two = 0;
  for (int k = 0; k < 20; ++k) of_two += queue->take(0).front()->group == 2;
  CHECK(of_two == 10 || of_two == 11);
}

// Thousands of groups that come once leave nothing behind but their weights.
void groups_are_forgotten() {
  auto queue = named("twins-busy");
  std::deque<Request> requests;
  for (std::uint64_t group = 0; group < 5000; ++group) {
    requests.push_back(at(0, 10));
    requests.back().group = group;
    queue->add(requests.back());
    if (group % 3 == 2) {
      for (Batch batch = queue->take(0); !batch.empty(); batch = queue->take(0)) {
        queue->served(*batch.front());
      }
    }
  }
  CHECK(queue->groups() <= 64);
}

// Backlogged groups have batches in service in proportion to their weights, whatever ends first,
// and one that is alone has all: |s_f / w_f - s_g / w_g| <= max(1 / w_f, 1 / w_g) once each had its
// turn.
void concurrency_follows_weights() {
  constexpr std::uint32_t depth = 28;
  const double weight[] = {1.0, 2.0, 4.0};
  Settings settings;
  settings.shares = Shares::concurrency;
  auto queue = make_scheduler(settings);
  std::mt19937 random(7);
  std::deque<Request> requests;
  std::vector<std::uint64_t> serving;
  const auto take = [&] {
    const Batch batch = queue->take(0);
    serving.push_back(batch.front()->group);
    requests.push_back(at(0, 1 + random() % 60'000));
    requests.back().group = serving.back();
    queue->add(requests.back());  // whoever is served asks again
  };
  const auto arrive = [&](std::uint64_t group) {
    queue->weigh(0, group, weight[group]);
    for (std::uint32_t k = 0; k < depth; ++k) {
      requests.push_back(at(0, 1 + random() % 60'000));
      requests.back().group = group;
      queue->add(requests.back());
    }
  };
  arrive(0);
  while (serving.size() < depth) take();
  CHECK(queue->in_service(0, 0) == depth);
  arrive(1);
  arrive(2);
  for (int step = 0; step < 4000; ++step) {
    const std::size_t k = random() % serving.size();
    Request of_job;
    of_job.group = serving[k];
    queue->served(of_job);
    serving.erase(serving.begin() + static_cast<std::ptrdiff_t>(k));
    if (step == 2000) {  // to another queue while requests are in service
      const std::vector<Request*> queued = queue->drain();
      auto next = make_scheduler(settings);
      for (std::uint64_t group = 0; group < 3; ++group) next->weigh(0, group, weight[group]);
      next->take_over(*queue);
      for (Request* request : queued) next->add(*request);
      queue = std::move(next);
    }
    take();
    if (step < 500) continue;
    CHECK(queue->in_service(0, 0) == 4 && queue->in_service(0, 1) == 8 &&
          queue->in_service(0, 2) == 16);
  }
}

// I/O nodes of different numbers serve different servers in every window; each serves them all.
void io_nodes_do_not_meet() {
  std::map<std::uint32_t, std::set<std::uint32_t>> seen;
  for (Time now = 0; now < 60; now += 5) {
    std::set<std::uint32_t> now_served;
    for (std::uint32_t io_node = 0; io_node < 3; ++io_node) {
      auto scheduler = named("twins", io_node);
      Request requests[3];
      for (std::uint32_t server = 0; server < 3; ++server) {
        requests[server].server = server;
        scheduler->add(requests[server]);
      }
      const std::uint32_t server = scheduler->take(now).front()->server;
      now_served.insert(server);
      seen[io_node].insert(server);
      CHECK(scheduler->take(now).empty());
      CHECK(scheduler->ready_at(now) == now / 10 * 10 + 10);
    }
    CHECK(now_served.size() == 3);
  }
  for (const auto& entry : seen) CHECK(entry.second.size() == 3);
}

// One vectored call takes no more than IOV_MAX parts, however small they are.
void batches_fit_into_a_call() {
  for (const std::string& name : scheduler_names()) {
    Settings settings;
    settings.scheduler = name;
    auto scheduler = make_scheduler(settings);
    std::deque<Request> requests;
    for (std::uint64_t k = 0; k < 3000; ++k) {
      requests.push_back(at((k * 7) % 3000, 1));
      scheduler->add(requests.back());
    }
    std::size_t most = 0;
    for (std::size_t left = 3000; left > 0;) {
      const Batch batch = scheduler->take(0);
      most = std::max(most, batch.size());
      left -= batch.size();
    }
    CHECK(most == (name == "fifo" ? 1 : largest_batch));
  }
}

// A batch that was moved from is empty, so that it is not served twice.
void a_moved_batch_is_empty() {
  Request one;
  Request two;
  Batch batch(one);
  const Batch alone = std::move(batch);
  CHECK(batch.empty() && alone.size() == 1 && alone.front() == &one);
  batch.push_back(&one);
  batch.push_back(&two);
  const Batch both = std::move(batch);
  CHECK(batch.empty() && batch.size() == 0 && both.size() == 2 && both.back() == &two);
}

void wrong_settings_are_refused() {
  const auto refused = [](auto change) {
    Settings settings;
    change(settings);
    try {
      make_scheduler(settings);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(refused([](Settings& settings) { settings.scheduler = "no such"; }));
  CHECK(refused([](Settings& settings) { settings.window = 0; }));
  CHECK(refused([](Settings& settings) { settings.servers = 0; }));
  CHECK(refused([](Settings& settings) { settings.quantum = 0; }));
  CHECK(!refused([](Settings&) {}));
}

// Whatever an extended attribute holds, nothing is read beyond it (ASan sees), and it is a layout
// with a target for every byte, or none. That it is the right one:
// tests/live/storage/test_stripe_layout.py.
void spoilt_layouts_do_no_harm() {
  std::vector<std::uint8_t> whole(32 + 2 * 48 + 2 * (32 + 3 * 24));
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t k = 0; k < bytes; ++k)
      whole[at + k] = static_cast<std::uint8_t>(value >> 8 * k);
  };
  put(0, 0x0BD60BD0, 4);
  put(14, 2, 2);
  for (std::size_t k = 0; k < 2; ++k) {
    const std::size_t entry = 32 + 48 * k;
    const std::size_t layout = 128 + 104 * k;
    put(entry + 8, 1000 * k, 8);
    put(entry + 16, 1000 * (k + 1), 8);
    put(entry + 24, layout, 4);
    put(entry + 28, 104, 4);
    put(layout, 0x0BD10BD0, 4);
    put(layout + 24, 100, 4);
    put(layout + 28, 3, 2);
    for (std::size_t object = 0; object < 3; ++object)
      put(layout + 52 + 24 * object, 7 * object, 4);
  }
  CHECK(StripeMap::from_lustre(whole)->server(1100) == 14);
  std::string path = "/tmp/penstock-layout-XXXXXX";
  const int file = ::mkstemp(path.data());
  CHECK(file >= 0 && ::unlink(path.c_str()) == 0 && !StripeMap::of(file));
  // Lustre's own name for it is Lustre's alone.
  if (::fsetxattr(file, "user.lov", whole.data(), whole.size(), 0) == 0) {
    CHECK(StripeMap::of(file, "user.lov")->server(1100) == 14);
  }
  ::close(file);
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> spoilt = whole;
    if (round % 2 == 0) spoilt.resize(random() % whole.size() + 1);
    for (int k = 0; k < 3; ++k) {
      spoilt[random() % spoilt.size()] = static_cast<std::uint8_t>(random());
    }
    spoilt.shrink_to_fit();
    const auto map = StripeMap::from_lustre(spoilt);
    if (map) map->server(random());
    refused += !map;
  }
  CHECK(refused > 10'000 && refused < 19'000);
}

}  // namespace

int main() {
  for (const std::string& name : scheduler_names()) everything_comes_out_once(name);
  fifo_takes_no_memory(1);
  fifo_takes_no_memory(3);
  shares_follow_weights();
  absence_is_not_saved();
  groups_are_forgotten();
  concurrency_follows_weights();
  io_nodes_do_not_meet();
  batches_fit_into_a_call();
  a_moved_batch_is_empty();
  wrong_settings_are_refused();
  spoilt_layouts_do_no_harm();
  std::puts("schedulers: all hold");
}
