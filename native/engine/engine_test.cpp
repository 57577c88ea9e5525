// The equations that the engine's parts must satisfy, and a soak of every mode at once; built
// under ASan, UBSan and TSan by tests/native.

#include <cmath>
#include <random>
#include <thread>

#include "check.hpp"
#include "engine.hpp"

using namespace penstock;

namespace {

void sums_do_not_drift() {
  ExactSum sum;
  sum.add(1e-5);
  for (int i = 0; i < 1000; ++i) sum.add(10.0 * i + 0.1);
  for (int i = 0; i < 1000; ++i) sum.add(-(10.0 * i + 0.1));
  CHECK(sum.value() == 1e-5);
}

void heaps_sort() {
  std::mt19937 random(1);
  std::vector<std::size_t> where(500);
  struct Track {
    std::vector<std::size_t>* where;
    void operator()(std::int32_t item, std::size_t at) const {
      (*where)[static_cast<std::size_t>(item)] = at;
    }
  };
  Heap<Track> heap(Track{&where});
  for (std::int32_t i = 0; i < 500; ++i) heap.push({static_cast<double>(random() % 50), i, i});
  for (std::int32_t i = 0; i < 500; i += 7) heap.remove(where[static_cast<std::size_t>(i)]);
  double last_key = -1.0;
  std::int32_t last_tie = -1;
  std::size_t popped = 0;
  for (; !heap.empty(); heap.pop(), ++popped) {
    const auto& top = heap.top();
    CHECK(top.item % 7 != 0);
    CHECK(top.key > last_key || (top.key == last_key && top.tie > last_tie));
    last_key = top.key;
    last_tie = top.tie;
  }
  CHECK(popped == 500 - 72);
}

// x_i = w_i / sum w: three transfers of one isolated second with weights 1, 2 and 5.
void resources_share_by_weight() {
  Transfers transfers(3);
  const std::vector<double> capacity{1.0};
  std::vector<Segment> timeline;
  Resource resource(transfers, capacity, false, &timeline);
  const double weights[] = {1.0, 2.0, 5.0};
  for (std::int32_t i = 0; i < 3; ++i) {
    Transfer& x = transfers[static_cast<std::size_t>(i)];
    x.job = i;
    x.weight = weights[i];
    x.remaining = 1.0;
    x.state = Transfer::State::waiting;
    resource.admit(i);
  }
  resource.settle();
  CHECK(resource.next_item() == 2);
  CHECK(std::abs(resource.next_end() - 8.0 / 5.0) < 1e-12);
  resource.finish(2, resource.next_end());
  resource.settle();
  CHECK(timeline.front().share == 5.0 / 8.0);
  CHECK(resource.next_item() == 1);
}

// Caps 0.2 and 1 with equal weights: 0.2 and 0.8.
void caps_leave_the_rest_to_others() {
  Transfers transfers(2);
  const std::vector<double> capacity{1.0};
  Resource resource(transfers, capacity, true, nullptr);
  for (std::int32_t i = 0; i < 2; ++i) {
    Transfer& x = transfers[static_cast<std::size_t>(i)];
    x.job = i;
    x.max_share = i == 0 ? 0.2 : 1.0;
    x.remaining = 1.0;
    x.state = Transfer::State::waiting;
    resource.admit(i);
  }
  resource.settle();
  CHECK(transfers[0].state == Transfer::State::capped);
  CHECK(resource.next_item() == 1);
  CHECK(std::abs(resource.next_end() - 1.0 / 0.8) < 1e-12);
}

class RandomHost final : public Host {
 public:
  explicit RandomHost(std::uint32_t seed, std::int32_t resources)
      : random_(seed), resources_(resources) {}

  Sample sample(std::int32_t) override {
    return {static_cast<std::int32_t>(random_() % 4) - 1, 1.0 + static_cast<double>(random_() % 3)};
  }
  double weight(std::int32_t job) override {
    return 1.0 + static_cast<double>((job + ++asked_) % 4);
  }
  std::int32_t places() override { return 1 + static_cast<std::int32_t>(random_() % 3); }
  double requested(std::int32_t) override { return never; }
  double ended(std::int32_t, std::int32_t, double, bool) override { return never; }
  double turn(std::int32_t job) override { return static_cast<double>(job % 3); }
  void on_job(JobEvent event, std::int32_t job, Decision& decision) override {
    if (event == JobEvent::started) {
      std::vector<std::int32_t> where;
      for (std::int32_t r = 0; r < resources_; ++r) {
        if (random_() % 2 == 0) where.push_back(r);
      }
      if (!where.empty()) decision.assignments.push_back({job, where, 0.5, 1.0});
      decision.wake_at.push_back(static_cast<double>(random_() % 100));
    }
  }

 private:
  std::mt19937 random_;
  std::int32_t resources_;
  std::int32_t asked_ = 0;
};

// Random workloads through every mode: all jobs end, and no sanitizer has anything to say.
void soak(std::uint32_t seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const std::int32_t n = 1 + static_cast<std::int32_t>(random() % 20);
    const std::int32_t resources = 1 + static_cast<std::int32_t>(random() % 4);
    std::vector<double> compute, io, release, work, max_share, part, weight;
    std::vector<std::int64_t> offsets{0}, nodes, resource_offsets{0};
    std::vector<std::int32_t> on, barrier, after, group;
    for (std::int32_t j = 0; j < n; ++j) {
      for (std::uint32_t i = 0; i < 1 + random() % 20; ++i) {
        compute.push_back(static_cast<double>(random() % 7) / 2);
        io.push_back(static_cast<double>(random() % 5) / 2);
      }
      offsets.push_back(static_cast<std::int64_t>(io.size()));
      work.push_back(100.0);
      release.push_back(static_cast<double>(random() % 5));
      nodes.push_back(1 + static_cast<std::int64_t>(random() % 3));
      max_share.push_back(round % 3 == 0 ? 1.0 : 0.1 * (1 + static_cast<double>(random() % 10)));
      part.push_back(round % 5 != 0 ? 1.0 : 0.1 * (1 + static_cast<double>(random() % 10)));
      weight.push_back(std::pow(10.0, -static_cast<double>(random() % 4)));
      group.push_back(static_cast<std::int32_t>(random() % 4) - 1);
      on.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(resources)));
      resource_offsets.push_back(static_cast<std::int64_t>(on.size()));
      barrier.push_back(static_cast<std::int32_t>(random() % 3) - 1);
      after.push_back(barrier.back() - 1);
    }
    std::vector<double> request(io.size()), end(io.size()), start(release.size());
    const std::vector<double> capacity{1.0, 0.9};
    RandomHost host(seed, resources);
    const std::vector<double> marks{0.0, 3.0, 40.0}, factor(release.size(), 1.5);
    std::vector<double> moved(marks.size() * release.size());
    Record record{request, end, start, moved, {}, 0};
    const Sharing sharing{.group = group,
                          .weight = weight,
                          .order = static_cast<Order>(random() % 10),
                          .hedge = 0.2,
                          .unknown = 3.0,
                          .places = 1 + static_cast<std::int32_t>(random() % 2),
                          .preemptive = random() % 2 == 0,
                          .dynamic = random() % 2 == 0,
                          .sampled = random() % 2 == 0,
                          .reweighs = random() % 2 == 0,
                          .observes = random() % 2 == 0};
    Engine engine({compute, io, offsets, release, work, nodes, max_share, part, resource_offsets,
                   on, barrier, after},
                  {resources, random() % 2 == 0 ? 0 : 5, round % 5 == 0, capacity},
                  {factor, random() % 2 == 0}, sharing, &host, marks, random() % 2 == 0, record);
    while (engine.run(1000)) {
    }
    CHECK(engine.unfinished() == 0);
    CHECK(record.phase_ends == static_cast<std::int64_t>(2 * io.size()));
    for (std::size_t i = 0; i < io.size(); ++i) CHECK(end[i] >= request[i]);
    for (const double seconds : moved) CHECK(seconds >= 0.0);
  }
}

}  // namespace

int main() {
  sums_do_not_drift();
  heaps_sort();
  resources_share_by_weight();
  caps_leave_the_rest_to_others();
  // Engines share nothing: Python runs several at once with the interpreter's lock released.
  std::vector<std::thread> threads;
  for (std::uint32_t seed = 0; seed < 3; ++seed) threads.emplace_back(soak, seed);
  for (std::thread& thread : threads) thread.join();
  std::puts("engine: all hold");
}
