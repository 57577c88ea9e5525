// Python's door to the engine: arrays in without copying, results into the caller's arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  T* data = owned->data();
  const std::size_t size = owned.release()->size();
  return {data, {size}, owner};
}

// What a policy in plain Python may look at while the engine runs; see penstock.model.View.
class EngineView {
 public:
  EngineView(nb::object jobs, nb::object site) : jobs_(std::move(jobs)), site_(std::move(site)) {}

  [[nodiscard]] nb::object jobs() const { return jobs_; }
  [[nodiscard]] nb::object site() const { return site_; }
  void watch(const Engine* engine) { engine_ = engine; }

  [[nodiscard]] double now() const { return engine().now(); }
  [[nodiscard]] double progress(nb::handle job) const { return engine().progress(serial(job)); }
  [[nodiscard]] double work_left(nb::handle job) const { return engine().work_left(serial(job)); }
  [[nodiscard]] double io_done(nb::handle job) const { return engine().io_done(serial(job)); }
  [[nodiscard]] double age(nb::handle job) const { return engine().age(serial(job)); }
  [[nodiscard]] double remaining(nb::handle request) const {
    return engine().remaining(serial(request.attr("job")));
  }
  [[nodiscard]] double phase_io(std::int32_t job) const { return engine().phase_io(job); }

 private:
  std::int32_t serial(nb::handle job) const {
    const auto serial = nb::cast<std::int32_t>(job.attr("serial"));
    if (serial < 0 || serial >= engine().jobs()) throw nb::value_error("no job has that serial");
    return serial;
  }

  [[nodiscard]] const Engine& engine() const {
    if (engine_ == nullptr) throw std::runtime_error("this view is valid only while its run lasts");
    return *engine_;
  }

  nb::object jobs_;
  nb::object site_;
  const Engine* engine_ = nullptr;
};

// Asks the Python side, sim/engine.py's _Host; the policy's own
// `turn(request, view)` without a frame in between, for it is called most.
class PythonHost final : public Host {
 public:
  PythonHost(nb::object host, nb::object view, bool requests)
      : requested_(host.attr("requested")),
        ended_(host.attr("ended")),
        sample_(host.attr("sample")),
        on_job_(host.attr("on_job")),
        turn_(host.attr("turn")),
        requests_(nb::cast<nb::list>(host.attr("requests"))),
        view_(std::move(view)),
        wants_requests_(requests) {}

  Sample sample(std::int32_t job) override {
    const auto [group, weight] = nb::cast<std::pair<std::int32_t, double>>(sample_(job));
    return {group, weight};
  }

  void requested(std::int32_t job) override {
    if (wants_requests_) requested_(job);
  }

  void ended(std::int32_t job, double io) override { ended_(job, io); }

  double turn(std::int32_t job) override {
    double turn = 0.0;
    if (!nb::try_cast(turn_(requests_[static_cast<std::size_t>(job)], view_), turn)) {
      throw nb::type_error("turn() must return a number");
    }
    return turn;
  }

  void on_job(JobEvent event, std::int32_t job, Decision& decision) override {
    const nb::object answer = on_job_(static_cast<std::int32_t>(event), job);
    const auto [assignments, wake_at] = nb::cast<std::pair<nb::list, std::vector<double>>>(answer);
    for (const nb::handle item : assignments) {
      const auto entry = nb::cast<nb::tuple>(item);
      decision.assignments.push_back({nb::cast<std::int32_t>(entry[0]),
                                      nb::cast<std::vector<std::int32_t>>(entry[1]),
                                      nb::cast<double>(entry[2])});
    }
    decision.wake_at = wake_at;
  }

 private:
  nb::object requested_;
  nb::object ended_;
  nb::object sample_;
  nb::object on_job_;
  nb::object turn_;
  nb::list requests_;
  nb::object view_;
  bool wants_requests_;
};

// Long runs stay interruptible: signals are looked at once in this many events.
constexpr std::int64_t events_between_signals = 1 << 14;

nb::tuple run(In<double> compute, In<double> io, In<std::int64_t> offsets, In<double> release,
              In<double> work, In<std::int64_t> nodes, In<double> max_share, In<std::int64_t> resource_offsets,
              In<std::int32_t> resources, In<std::int32_t> barrier, In<std::int32_t> after,
              std::int32_t site_resources, std::int64_t site_nodes, In<double> capacity,
              In<std::int32_t> group, In<double> weight, std::int32_t order, bool preemptive,
              bool dynamic, bool sampled, nb::object host, bool hook_jobs, bool keep_timeline,
              Out<double> request, Out<double> end, Out<double> start) {
  const Workload workload{view(compute), view(io),        view(offsets),
                          view(release), view(work),      view(nodes),
                          view(max_share), view(resource_offsets), view(resources),
                          view(barrier), view(after)};
  const Site site{site_resources, site_nodes, view(capacity)};
  const Sharing sharing{view(group), view(weight), static_cast<Order>(order), preemptive, dynamic,
                        sampled};
  Record record{view(request), view(end), view(start), {}, 0};

  std::optional<PythonHost> python;
  EngineView* watcher = nullptr;
  if (!host.is_none()) {
    nb::object engine_view = nb::cast(EngineView{host.attr("jobs"), host.attr("site")});
    watcher = nb::cast<EngineView*>(engine_view);
    host.attr("view") = engine_view;
    python.emplace(host, engine_view, sampled || sharing.order == Order::host);
  }
  Engine engine(workload, site, sharing, python ? &*python : nullptr, hook_jobs, keep_timeline,
                record);
  struct Watch {  // the view must not outlive the engine it looks at, whatever is thrown
    EngineView* view;
    ~Watch() {
      if (view != nullptr) view->watch(nullptr);
    }
  } watch{watcher};
  if (watcher != nullptr) watcher->watch(&engine);

  for (bool more = true; more;) {
    if (python) {
      more = engine.run(events_between_signals);
    } else {
      nb::gil_scoped_release unlocked;
      more = engine.run(events_between_signals);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  nb::object timeline = nb::none();
  if (keep_timeline) {
    std::vector<std::int32_t> jobs;
    std::vector<std::int32_t> on;
    std::vector<double> starts;
    std::vector<double> ends;
    std::vector<double> shares;
    for (const Segment& segment : record.timeline) {
      jobs.push_back(segment.job);
      on.push_back(segment.resource);
      starts.push_back(segment.start);
      ends.push_back(segment.end);
      shares.push_back(segment.share);
    }
    timeline = nb::make_tuple(to_numpy(std::move(jobs)), to_numpy(std::move(on)),
                              to_numpy(std::move(starts)), to_numpy(std::move(ends)),
                              to_numpy(std::move(shares)));
  }
  return nb::make_tuple(record.phase_ends, engine.unfinished(), timeline);
}

}  // namespace
}  // namespace penstock

NB_MODULE(_engine, m) {
  using penstock::EngineView;
  m.doc() = "The fluid simulation kernel; use it through penstock.sim.engine.";
  nb::class_<EngineView>(m, "EngineView")
      .def_prop_ro("now", &EngineView::now)
      .def_prop_ro("jobs", &EngineView::jobs)
      .def_prop_ro("site", &EngineView::site)
      .def("progress", &EngineView::progress, "job"_a)
      .def("remaining", &EngineView::remaining, "request"_a)
      .def("work_left", &EngineView::work_left, "job"_a)
      .def("io_done", &EngineView::io_done, "job"_a)
      .def("age", &EngineView::age, "job"_a)
      .def("phase_io", &EngineView::phase_io, "serial"_a);
  m.def("run", &penstock::run, "compute"_a, "io"_a, "offsets"_a, "release"_a, "work"_a, "nodes"_a,
        "max_share"_a, "resource_offsets"_a, "resources"_a, "barrier"_a, "after"_a,
        "site_resources"_a, "site_nodes"_a, "capacity"_a, "group"_a, "weight"_a, "order"_a,
        "preemptive"_a, "dynamic"_a, "sampled"_a, "host"_a.none(), "hook_jobs"_a, "keep_timeline"_a,
        "request"_a, "end"_a, "start"_a);
}
