// The IO-SETS scenario on SimGrid's s4u API: jobs alternate compute and I/O
// phases and share one disk. Grouped jobs take turns, first come first served;
// groups that transfer at the same time share in proportion to their weights.
//
// usage: simgrid_io_sets WORKLOAD RESULT hosts|delays
//
// `hosts` computes as the paper's simulator does, each job executing flops on a
// host of its own; `delays` makes a compute phase a plain delay, with the same
// results several times faster. Both files are raw little-endian arrays, described in
// ../workload_file.py.

#include <simgrid/s4u.hpp>

// After s4u.hpp: SimGrid's version.h uses macros that it does not include itself.
#include <simgrid/version.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

// SimGrid moves whole bytes: every time the clock advances it rounds what each
// transfer has moved. A disk this fast keeps that rounding near 1e-12 s (at
// 1 GB/s the results lose two more digits), and a power of two scales
// seconds to bytes without an error of its own. SimGrid's default precisions
// are then tight enough; tighter ones change neither results nor speed.
constexpr double bytes_per_second = 0x1p40;

// The byte count of a phase has to fit an integer of 64 bits.
constexpr double longest_io_seconds = 0x1p62 / bytes_per_second;

struct Workload {
  std::vector<double> release;
  std::vector<std::int64_t> offsets;  // iterations of job j: [offsets[j], offsets[j + 1])
  std::vector<double> compute;
  std::vector<double> io;           // isolated seconds
  std::vector<std::int64_t> group;  // negative: the job never waits for a turn
  std::vector<double> weight;
};

template <class T>
std::vector<T> read_array(std::istream& in, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  in.read(reinterpret_cast<char*>(values.data()),
          static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

Workload read_workload(const char* path) {
  std::ifstream in(path, std::ios::binary);
  in.exceptions(std::ios::badbit | std::ios::failbit);
  const auto counts = read_array<std::int64_t>(in, 2);
  const auto jobs = counts[0];
  const auto iterations = counts[1];

  Workload w;
  w.release = read_array<double>(in, jobs);
  w.offsets = read_array<std::int64_t>(in, jobs + 1);
  w.compute = read_array<double>(in, iterations);
  w.io = read_array<double>(in, iterations);
  w.group = read_array<std::int64_t>(in, jobs);
  w.weight = read_array<double>(in, jobs);
  for (const double seconds : w.io)
    if (!(seconds >= 0 && seconds <= longest_io_seconds))
      throw std::runtime_error("an I/O phase must last from 0 to " +
                               std::to_string(longest_io_seconds) + " s");
  return w;
}

void write_array(std::ostream& out, const std::vector<double>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
}

struct Phases {
  std::vector<double> request;  // when the I/O was asked for, i.e. its compute phase ended
  std::vector<double> end;      // when the I/O ended
};

constexpr double flops_per_second = 1e9;

// s4u::Mutex hands over to the actor that has waited longest, which is FCFS;
// requests of the very same instant queue in SimGrid's own order, not by job.
void run_job(const Workload& w, std::size_t job, bool on_hosts, const s4u::Disk* disk,
             const s4u::MutexPtr& turn, Phases& phases) {
  s4u::this_actor::sleep_until(w.release[job]);
  for (auto i = w.offsets[job]; i < w.offsets[job + 1]; ++i) {
    if (on_hosts)
      s4u::this_actor::execute(w.compute[i] * flops_per_second);
    else
      s4u::this_actor::sleep_for(w.compute[i]);
    phases.request[i] = s4u::Engine::get_clock();
    if (turn) turn->lock();
    disk->write(static_cast<sg_size_t>(std::llround(w.io[i] * bytes_per_second)), w.weight[job]);
    if (turn) turn->unlock();
    phases.end[i] = s4u::Engine::get_clock();
  }
}

}  // namespace

int main(int argc, char* argv[]) try {
  s4u::Engine engine(&argc, argv);
  const std::string computing = argc == 4 ? argv[3] : "";
  if (computing != "hosts" && computing != "delays")
    throw std::runtime_error("usage: simgrid_io_sets WORKLOAD RESULT hosts|delays");
  const bool on_hosts = computing == "hosts";
  const Workload w = read_workload(argv[1]);
  Phases phases{std::vector<double>(w.io.size()), std::vector<double>(w.io.size())};

  // SimGrid 4 renamed what builds a platform.
#if SIMGRID_VERSION_MAJOR >= 4
  auto* zone = engine.get_netzone_root()->add_netzone_full("cluster");
  const auto new_host = [zone](const std::string& name) {
    return zone->add_host(name, flops_per_second);
  };
  auto* host = new_host("storage");
  const auto* disk = host->add_disk("pfs", bytes_per_second, bytes_per_second);
#else
  auto* zone = s4u::create_full_zone("cluster");
  const auto new_host = [zone](const std::string& name) {
    return zone->create_host(name, flops_per_second);
  };
  auto* host = new_host("storage");
  const auto* disk = host->create_disk("pfs", bytes_per_second, bytes_per_second);
#endif

  std::map<std::int64_t, s4u::MutexPtr> turns;
  for (std::size_t job = 0; job < w.release.size(); ++job) {
    s4u::MutexPtr turn;
    if (w.group[job] >= 0) {
      auto& shared = turns[w.group[job]];
      if (!shared) shared = s4u::Mutex::create();
      turn = shared;
    }
    const auto run = [&w, &phases, job, on_hosts, disk, turn] {
      run_job(w, job, on_hosts, disk, turn, phases);
    };
    const std::string name = "job" + std::to_string(job);
    auto* node = on_hosts ? new_host("node" + std::to_string(job)) : host;
#if SIMGRID_VERSION_MAJOR >= 4
    node->add_actor(name, run);
#else
    s4u::Actor::create(name, node, run);
#endif
  }

  const auto start = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

  std::ofstream out(argv[2], std::ios::binary);
  out.exceptions(std::ios::badbit | std::ios::failbit);
  write_array(out, phases.request);
  write_array(out, phases.end);
  std::printf("{\"seconds\": %.9f}\n", wall.count());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "simgrid_io_sets: %s\n", error.what());
  return 1;
}
