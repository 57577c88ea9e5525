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
  std::span<const double> work;  // compute and I/O of a job, in its own isolated seconds
  std::span<const std::int64_t> nodes;
  std::span<const double> max_share;  // the part of a resource that a job can use when alone
  std::span<const double> part;       // of that, what its curve leaves it on its first resources
  std::span<const std::int64_t> resource_offsets;
  std::span<const std::int32_t> resources;
  std::span<const std::int32_t> barrier;  // the barrier a job counts for, or -1
  std::span<const std::int32_t> after;    // the barrier it starts behind, or -1

  [[nodiscard]] std::int32_t jobs() const { return static_cast<std::int32_t>(release.size()); }
};

struct Site {
  std::int32_t resources = 1;
  std::int64_t nodes = 0;            // 0: as many as the jobs ask for
  bool work_conserving = false;      // assignments may leave jobs a part of their resources
  std::span<const double> capacity;  // capacity[k - 1] with k transfers at once
};

// How much the policies are told: lengths are the truth times a job's factor, or the mean of the
// job's phases so far.
struct Knowledge {
  std::span<const double> factor;
  bool learned = false;
};

// The turn orders the engine knows; any other is asked of the host.
enum class Order : std::int32_t {
  host = 0,
  arrival = 1,
  least_left = 2,
  yield = 3,
  serial = 4,
  shortest_io = 5,
  longest_io = 6,
  least_work_left = 7,
  most_work_left = 8,
  io_ratio = 9,
};

inline constexpr std::int32_t own_group = -1;
// The weight, relative to its own, of a job that has what others of its group leave.
inline constexpr double squeezed_weight = 1e-6;
inline constexpr std::int32_t direct_path = -1;  // where a phase without resources ends

struct Sharing {
  std::span<const std::int32_t> group;  // own_group: never waits
  std::span<const double> weight;
  Order order = Order::arrival;
  double hedge = 0.0;       // of least_left: what is left of an overdue phase, over what is done
  double unknown = 0.0;     // of least_left: the length of a phase of which nothing is known
  std::int32_t places = 1;  // jobs of a group that may transfer at once, at first
  bool preemptive = false;
  bool dynamic = false;
  bool sampled = false;   // group and weight are asked of the host at every phase
  bool in_order = false;  // the last of a group's holders has what the others leave
  bool reweighs = false;  // the weights of those that transfer, at every event of their resource
  bool observes = false;  // the host is told of every event, and every wake is a new decision
};

struct Sample {
  std::int32_t group;
  double weight;
};

struct Assignment {
  std::int32_t job;
  std::vector<std::int32_t> resources;
  double scale;  // the phase's isolated seconds on each of them, relative to Workload::io
  double part;   // of max_share, what the job's curve leaves it on them
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
  virtual double weight(std::int32_t job) = 0;
  virtual std::int32_t places() = 0;
  // A phase begins; the job's part of it on a resource has ended, and with the last part the phase.
  // Both return when the policy wants to be woken, or never.
  virtual double requested(std::int32_t job) = 0;
  virtual double ended(std::int32_t job, std::int32_t resource, double io, bool last) = 0;
  virtual double turn(std::int32_t job) = 0;
  virtual void on_job(JobEvent event, std::int32_t job, Decision& decision) = 0;
};

// The whole record of a run: iteration i computed until request[i] and had its I/O done at end[i].
struct Record {
  std::span<double> request;
  std::span<double> end;
  std::span<double> start;  // a job
  std::span<double> moved;  // at each mark, a job: isolated seconds done of the phase under way
  std::vector<Segment> timeline;
  std::int64_t phase_ends = 0;
};

class Engine {
 public:
  // `marks`, in order, are the times at which the record's `moved` is taken.
  Engine(const Workload& workload, const Site& site, const Knowledge& knowledge,
         const Sharing& sharing, Host* host, std::span<const double> marks, bool keep_timeline,
         Record& record);

  // Runs at most `events` events; false once nothing is left to happen.
  bool run(std::int64_t events);

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] std::int32_t jobs() const { return workload_.jobs(); }
  // A job's time is counted as if it ran alone: its I/O at its own bandwidth, which is `max_share`
  // of a resource. Groups count that much for it, whatever its curve leaves it.
  [[nodiscard]] double progress(std::int32_t job) const;
  [[nodiscard]] double work_left(std::int32_t job) const;  // NaN: not known
  [[nodiscard]] double io_done(std::int32_t job) const {
    return at(jobs_, job).io_done + in_phase(job);
  }
  [[nodiscard]] double age(std::int32_t job) const { return now_ - at(jobs_, job).started; }
  // Of the I/O phase under way: how long it is expected to be (NaN: not known), and what is done.
  [[nodiscard]] double expected(std::int32_t job) const;
  [[nodiscard]] double phase_done(std::int32_t job) const;
  [[nodiscard]] std::int64_t unfinished() const { return unfinished_; }

 private:
  struct Job {
    std::int64_t iteration = 0;
    double started = 0.0;
    double arrival = 0.0;   // of the phase it is in
    double phase_io = 0.0;  // seconds of that phase on the whole of each resource it has now
    double done = 0.0;      // work before the present compute or I/O phase, in isolated seconds
    double io_done = 0.0;   // of which I/O
    double computing_since = 0.0;
    double phases_io = 0.0;  // of the phases that ended, on the resources that they had
    double weight = 1.0;
    double scale = 1.0;
    double part = 1.0;
    double max_share = 1.0;  // on the resources that it has now
    std::int64_t phases = 0;
    std::int32_t group = own_group;
    std::int32_t first = 0;  // its transfers: [first, first + width)
    std::int32_t width = 0;
    std::int32_t pending = 0;
    std::int32_t assignment = -1;  // takes effect at the next phase
    bool direct = false;           // in an I/O phase without resources
    bool computing = false;
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

  // One group on one resource: who waits, who came in this instant, who transfers (kept only where
  // it may be preempted).
  struct Group {
    std::vector<Waiting> waiting;
    std::vector<Waiting> fresh;
    std::vector<Waiting> holders;
    ExactSum admitted_share;
    std::int32_t admitted = 0;
    bool undecided = false;
    bool squeezed = false;  // the last holder has what the others leave

    [[nodiscard]] bool idle() const { return admitted == 0 && waiting.empty() && !undecided; }
  };

  struct Place {
    std::int32_t resource;
    std::int32_t group;
  };

  template <class T>
  static T& at(std::vector<T>& items, std::int32_t index) {
    return items[static_cast<std::size_t>(index)];
  }
  template <class T>
  static const T& at(const std::vector<T>& items, std::int32_t index) {
    return items[static_cast<std::size_t>(index)];
  }

  [[nodiscard]] double remaining(std::int32_t job) const;  // on its slowest resource, all of it
  [[nodiscard]] double in_phase(std::int32_t job) const;   // work done of the I/O phase under way
  [[nodiscard]] double left(std::int32_t job) const;
  Resource& resource_of(std::int32_t item) { return at(resources_, at(transfers_, item).resource); }

  void compute(std::int32_t j);
  void release(std::int32_t j);
  void start_queued();
  void start(std::int32_t j);
  void begin_io(std::int32_t j);
  void end_transfer(std::int32_t r);
  void end_phase(std::int32_t j, std::int32_t r = direct_path);
  void next_iteration(std::int32_t j);
  void end_job(std::int32_t j);
  void tell(JobEvent event, std::int32_t j);
  void take_assignment(Job& job, std::int32_t j);
  [[nodiscard]] double mark_time() const {
    return next_mark_ < marks_.size() ? marks_[next_mark_] : never;
  }
  void mark();
  void wake_at(double time);

  Group& group(std::int32_t r, std::int32_t g) {
    auto& groups = at(groups_, r);
    const auto index = static_cast<std::size_t>(g);
    if (index >= groups.size()) groups.resize(index + 1);
    return groups[index];
  }
  double turn(std::int32_t j);
  [[nodiscard]] bool has_room(const Group& group) const;
  void undecided(Group& group, std::int32_t r, std::int32_t g);
  void touch(std::int32_t r);
  void request(std::int32_t j);
  void wait(Group& group, Waiting request);
  void decide();
  void admit(Group& group, const Waiting& next);
  void choose(Group& group);
  void reweigh();
  void settle(std::int32_t r);

  Workload workload_;
  Site site_;
  Knowledge knowledge_;
  Sharing sharing_;
  Host* host_;
  Record* record_;
  std::span<const double> marks_;
  std::size_t next_mark_ = 0;

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

  // What happened in this instant, and awaits a decision.
  std::vector<std::int32_t> requests_;
  bool undecided_events_ = false;
  std::vector<Place> undecided_;
  std::vector<std::int32_t> touched_;
  std::vector<char> is_touched_;

  std::vector<Waiting> held_;
  std::vector<std::int32_t> to_hold_;
  std::vector<std::int32_t> to_admit_;
  std::vector<std::int32_t> reweighed_;
};

}  // namespace penstock
