#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "exact_sum.hpp"
#include "heap.hpp"
#include "resource.hpp"

namespace penstock {

// What really happens: borrowed arrays, phases in CSR form (job j owns [offsets[j], offsets[j+1])).
struct Workload {
  std::span<const double> compute;
  std::span<const double> io;
  std::span<const std::int64_t> offsets;
  std::span<const double> release;
  std::span<const double> work;  // compute and I/O of a job, in isolated seconds
  std::span<const std::int64_t> nodes;
  std::span<const double> max_share;
  std::span<const std::int64_t> resource_offsets;
  std::span<const std::int32_t> resources;
  std::span<const std::int32_t> barrier;  // the barrier a job counts for, or -1
  std::span<const std::int32_t> after;    // the barrier it starts behind, or -1

  [[nodiscard]] std::int32_t jobs() const { return static_cast<std::int32_t>(release.size()); }
};

struct Site {
  std::int32_t resources = 1;
  std::int64_t nodes = 0;            // 0: as many as the jobs ask for
  std::span<const double> capacity;  // capacity[k - 1] with k transfers at once
};

// The turn orders the engine knows; any other is asked of the host.
enum class Order : std::int32_t {
  host = 0,
  arrival = 1,
  remaining_io = 2,
  yield = 3,
  serial = 4,
  shortest_io = 5,
  longest_io = 6,
  least_work_left = 7,
  most_work_left = 8,
  io_ratio = 9,
};

inline constexpr std::int32_t own_group = -1;

struct Sharing {
  std::span<const std::int32_t> group;  // own_group: never waits
  std::span<const double> weight;
  Order order = Order::arrival;
  bool preemptive = false;
  bool dynamic = false;
  bool sampled = false;  // group and weight are asked of the host at every phase
};

struct Sample {
  std::int32_t group;
  double weight;
};

struct Assignment {
  std::int32_t job;
  std::vector<std::int32_t> resources;
  double scale;  // the phase's isolated seconds on each of them, relative to Workload::io
};

enum class JobEvent : std::int32_t { started = 0, ended = 1, woke = 2 };

struct Decision {
  std::vector<Assignment> assignments;
  std::vector<double> wake_at;
};

// The policies' side of the engine, when a policy is not lowered to arrays.
class Host {
 public:
  virtual ~Host() = default;
  virtual Sample sample(std::int32_t job) = 0;
  virtual void requested(std::int32_t job) = 0;
  virtual void ended(std::int32_t job, double io) = 0;
  virtual double turn(std::int32_t job) = 0;
  virtual void on_job(JobEvent event, std::int32_t job, Decision& decision) = 0;
};

// The whole record of a run: iteration i computed until request[i] and had its I/O done at end[i].
struct Record {
  std::span<double> request;
  std::span<double> end;
  std::span<double> start;  // a job
  std::vector<Segment> timeline;
  std::int64_t phase_ends = 0;
};

class Engine {
 public:
  Engine(const Workload& workload, const Site& site, const Sharing& sharing, Host* host,
         bool hook_jobs, bool keep_timeline, Record& record);

  // Runs at most `events` events; false once nothing is left to happen.
  bool run(std::int64_t events);

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] std::int32_t jobs() const { return workload_.jobs(); }
  [[nodiscard]] double progress(std::int32_t job) const {
    return at(jobs_, job).done + in_phase(job);
  }
  [[nodiscard]] double remaining(std::int32_t job) const;
  [[nodiscard]] double work_left(std::int32_t job) const {
    return at(jobs_, job).work - progress(job);
  }
  [[nodiscard]] double io_done(std::int32_t job) const {
    return at(jobs_, job).io_done + in_phase(job);
  }
  [[nodiscard]] double age(std::int32_t job) const { return now_ - at(jobs_, job).started; }
  [[nodiscard]] double phase_io(std::int32_t job) const { return at(jobs_, job).phase_io; }
  [[nodiscard]] std::int64_t unfinished() const { return unfinished_; }

 private:
  struct Job {
    std::int64_t iteration = 0;
    double started = 0.0;
    double arrival = 0.0;   // of the phase it is in
    double phase_io = 0.0;  // isolated seconds of that phase, on the resources it has now
    double done = 0.0;      // work before that phase's I/O, in the workload's isolated seconds
    double io_done = 0.0;   // of which I/O
    double work = 0.0;      // work in all
    double weight = 1.0;
    double scale = 1.0;
    std::int32_t group = own_group;
    std::int32_t first = 0;  // its transfers: [first, first + width)
    std::int32_t width = 0;
    std::int32_t pending = 0;
    std::int32_t assignment = -1;  // takes effect at the next phase
    bool direct = false;           // in an I/O phase past all resources
  };

  struct Waiting {
    double turn;
    double arrival;
    std::int32_t job;
    std::int32_t item;

    [[nodiscard]] bool after(const Waiting& other) const {
      if (turn != other.turn) return turn > other.turn;
      if (arrival != other.arrival) return arrival > other.arrival;
      return job > other.job;
    }
  };

  // One group on one resource: who waits, who transfers (kept only where it may be preempted).
  struct Group {
    std::vector<Waiting> waiting;
    std::vector<Waiting> holders;
    ExactSum admitted;
  };

  template <class T>
  static T& at(std::vector<T>& items, std::int32_t index) {
    return items[static_cast<std::size_t>(index)];
  }
  template <class T>
  static const T& at(const std::vector<T>& items, std::int32_t index) {
    return items[static_cast<std::size_t>(index)];
  }

  [[nodiscard]] double in_phase(std::int32_t job) const;  // work done of the I/O phase under way
  Resource& resource_of(std::int32_t item) { return at(resources_, at(transfers_, item).resource); }

  void compute(std::int32_t j);
  void release(std::int32_t j);
  void start_queued();
  void start(std::int32_t j);
  void begin_io(std::int32_t j);
  void end_transfer(std::int32_t r);
  void end_phase(std::int32_t j);
  void next_iteration(std::int32_t j);
  void end_job(std::int32_t j);
  void tell(JobEvent event, std::int32_t j);
  void take_assignment(Job& job, std::int32_t j);

  Group& group(std::int32_t r, std::int32_t g);
  double turn(std::int32_t j);
  void request(std::int32_t item);
  void choose(Group& group);
  void act();
  void settle(std::int32_t r);

  Workload workload_;
  Site site_;
  Sharing sharing_;
  Host* host_;
  Record* record_;
  bool hook_jobs_;

  double now_ = 0.0;
  std::int64_t free_nodes_ = 0;
  std::int64_t unfinished_ = 0;
  std::vector<Job> jobs_;
  Transfers transfers_;
  std::vector<Resource> resources_;
  std::vector<std::vector<Group>> groups_;
  Heap<Untracked> calendar_;
  std::vector<std::int32_t> winners_;  // tournament over the resources' next ends
  std::deque<std::int32_t> queue_;     // released, waiting for compute nodes
  std::vector<std::int64_t> barrier_open_jobs_;
  std::vector<std::vector<std::int32_t>> behind_barrier_;
  std::vector<Assignment> assignments_;
  Decision decision_;
  std::vector<Waiting> held_;
  std::vector<std::int32_t> to_hold_;
  std::vector<std::int32_t> to_admit_;
};

}  // namespace penstock
