// The Python binding of the engine: arrays are read in place, results are handed over as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

template <class T>
nb::object to_numpy(std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  T* data = owned->data();
  const std::size_t size = owned.release()->size();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

// The view of a policy in plain Python while the engine runs; see penstock.model.View.
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
  [[nodiscard]] double done(nb::handle request) const {
    return engine().phase_done(serial(request.attr("job")));
  }
  [[nodiscard]] std::optional<double> expected(nb::handle request) const {
    return expected_of(serial(request.attr("job")));
  }
  [[nodiscard]] double remaining(nb::handle request) const {
    const std::int32_t job = serial(request.attr("job"));
    return expected_of(job).value_or(never) - engine().phase_done(job);
  }
  [[nodiscard]] std::optional<double> expected_of(std::int32_t job) const {
    const double seconds = engine().expected(job);
    return std::isnan(seconds) ? std::nullopt : std::optional(seconds);
  }

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

// Calls sim/engine.py's _Host; and the policy's own `turn(request, view)` directly, since it is
// called most often.
class PythonHost final : public Host {
 public:
  PythonHost(nb::object host, nb::object view, bool requests)
      : requested_(host.attr("requested")),
        ended_(host.attr("ended")),
        sample_(host.attr("sample")),
        weight_(host.attr("weight")),
        places_(host.attr("places")),
        on_job_(host.attr("on_job")),
        turn_(host.attr("turn")),
        requests_(nb::cast<nb::list>(host.attr("requests"))),
        view_(std::move(view)),
        wants_requests_(requests),
        wants_ends_(nb::cast<bool>(host.attr("wants_ends"))) {}

  Sample sample(std::int32_t job) override {
    const auto [group, weight] = nb::cast<std::pair<std::int32_t, double>>(sample_(job));
    return {group, weight};
  }

  double weight(std::int32_t job) override { return nb::cast<double>(weight_(job)); }

  std::int32_t places() override { return nb::cast<std::int32_t>(places_()); }

  double requested(std::int32_t job) override {
    return wants_requests_ ? time(requested_(job)) : never;
  }

  double ended(std::int32_t job, std::int32_t resource, double io, bool last) override {
    return wants_ends_ ? time(ended_(job, resource, io, last)) : never;
  }

  double turn(std::int32_t job) override {
    double turn = 0.0;
    if (!nb::try_cast(turn_(requests_[static_cast<std::size_t>(job)], view_), turn)) {
      throw nb::type_error("turn() must return a number");
    }
    return turn;
  }

  void on_job(JobEvent event, std::int32_t job, Decision& decision) override {
    const nb::object answer = on_job_(event, job);
    const auto [assignments, wake_at] = nb::cast<std::pair<nb::list, std::vector<double>>>(answer);
    for (const nb::handle item : assignments) {
      const auto entry = nb::cast<nb::tuple>(item);
      decision.assignments.push_back({nb::cast<std::int32_t>(entry[0]),
                                      nb::cast<std::vector<std::int32_t>>(entry[1]),
                                      nb::cast<double>(entry[2]), nb::cast<double>(entry[3])});
    }
    decision.wake_at = wake_at;
  }

 private:
  static double time(nb::handle answer) {
    return answer.is_none() ? never : nb::cast<double>(answer);
  }

  nb::object requested_;
  nb::object ended_;
  nb::object sample_;
  nb::object weight_;
  nb::object places_;
  nb::object on_job_;
  nb::object turn_;
  nb::list requests_;
  nb::object view_;
  bool wants_requests_;
  bool wants_ends_;
};

// Long runs stay interruptible: signals are checked once in this many events.
constexpr std::int64_t events_between_signals = 1 << 14;

// The arrays of a Python object, read in place by name, and kept alive while the engine uses them.
class Arrays {
 public:
  explicit Arrays(nb::handle object) : object_(object) {}

  template <class T>
  std::span<const T> get(const char* name) {
    nb::object array = object_.attr(name);
    In<T> values;
    if (!nb::try_cast(array, values, /*convert=*/false)) {
      throw nb::type_error((std::string(name) + " must be a contiguous array of its type").c_str());
    }
    kept_.push_back(std::move(array));
    return view(values);
  }

 private:
  nb::handle object_;
  std::vector<nb::object> kept_;
};

// What a run returns: see penstock.sim.run.Run and Timeline.
struct TimelineColumns {
  nb::object job, resource, start, end, share;  // NumPy arrays
};

struct Result {
  nb::object request, end, start, moved;  // NumPy arrays
  std::int64_t phase_ends, unfinished;
  std::optional<TimelineColumns> timeline;
};

TimelineColumns columns(const std::vector<Segment>& segments) {
  std::vector<std::int32_t> job, resource;
  std::vector<double> start, end, share;
  for (const Segment& segment : segments) {
    job.push_back(segment.job);
    resource.push_back(segment.resource);
    start.push_back(segment.start);
    end.push_back(segment.end);
    share.push_back(segment.share);
  }
  return {to_numpy(std::move(job)), to_numpy(std::move(resource)), to_numpy(std::move(start)),
          to_numpy(std::move(end)), to_numpy(std::move(share))};
}

// `workload` is a penstock.sim.workload.Workload, `site` a penstock.model.Site, `sharing` what
// sim/engine.py lowers a policy and what it is told to, `host` its _Host or None.
Result run(nb::handle workload, nb::handle site, nb::handle sharing, nb::object host,
           const std::vector<double>& marks, bool timeline) {
  Arrays jobs(workload), lowered(sharing);
  const Workload work{.compute = jobs.get<double>("compute"),
                      .io = jobs.get<double>("io"),
                      .offsets = jobs.get<std::int64_t>("offsets"),
                      .release = jobs.get<double>("release"),
                      .work = jobs.get<double>("work"),
                      .nodes = jobs.get<std::int64_t>("nodes"),
                      .max_share = jobs.get<double>("max_share"),
                      .part = lowered.get<double>("part"),
                      .resource_offsets = jobs.get<std::int64_t>("resource_offsets"),
                      .resources = jobs.get<std::int32_t>("resources"),
                      .barrier = jobs.get<std::int32_t>("barrier"),
                      .after = jobs.get<std::int32_t>("after")};
  const auto capacity = nb::cast<std::vector<double>>(site.attr("capacity"));
  const Site machine{.resources = nb::cast<std::int32_t>(site.attr("resources")),
                     .nodes = nb::cast<std::int64_t>(site.attr("nodes")),
                     .work_conserving = nb::cast<bool>(site.attr("work_conserving")),
                     .capacity = capacity};
  const Sharing policy{.group = lowered.get<std::int32_t>("group"),
                       .weight = lowered.get<double>("weight"),
                       .order = nb::cast<Order>(sharing.attr("order")),
                       .hedge = nb::cast<double>(sharing.attr("hedge")),
                       .unknown = nb::cast<double>(sharing.attr("unknown")),
                       .places = nb::cast<std::int32_t>(sharing.attr("places")),
                       .preemptive = nb::cast<bool>(sharing.attr("preemptive")),
                       .dynamic = nb::cast<bool>(sharing.attr("dynamic")),
                       .sampled = nb::cast<bool>(sharing.attr("sampled")),
                       .in_order = nb::cast<bool>(sharing.attr("in_order")),
                       .reweighs = nb::cast<bool>(sharing.attr("reweighs")),
                       .observes = nb::cast<bool>(sharing.attr("observes"))};
  const Knowledge knowledge{.factor = lowered.get<double>("factor"),
                            .learned = nb::cast<bool>(sharing.attr("learned"))};
  std::vector<double> request(work.io.size()), end(work.io.size()), start(work.release.size());
  std::vector<double> moved(marks.size() * start.size());
  Record record{request, end, start, moved, {}, 0};

  std::optional<PythonHost> python;
  EngineView* watcher = nullptr;
  if (!host.is_none()) {
    nb::object engine_view = nb::cast(EngineView{host.attr("jobs"), host.attr("site")});
    watcher = nb::cast<EngineView*>(engine_view);
    host.attr("view") = engine_view;
    python.emplace(host, engine_view,
                   policy.sampled || policy.observes || policy.order == Order::host);
  }
  Engine engine(work, machine, knowledge, policy, python ? &*python : nullptr, marks, timeline,
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

  return {.request = to_numpy(std::move(request)),
          .end = to_numpy(std::move(end)),
          .start = to_numpy(std::move(start)),
          .moved = to_numpy(std::move(moved)),
          .phase_ends = record.phase_ends,
          .unfinished = engine.unfinished(),
          .timeline = timeline ? std::optional(columns(record.timeline)) : std::nullopt};
}

}  // namespace
}  // namespace penstock

NB_MODULE(_engine, m) {
  using penstock::EngineView, penstock::JobEvent, penstock::Order, penstock::Result;
  m.doc() = "The fluid simulation kernel; use it through penstock.sim.engine.";
  m.attr("OWN_GROUP") = penstock::own_group;
  nb::enum_<Order>(m, "Order")
      .value("HOST", Order::host)
      .value("ARRIVAL", Order::arrival)
      .value("LEAST_LEFT", Order::least_left)
      .value("YIELD", Order::yield)
      .value("SERIAL", Order::serial)
      .value("SHORTEST_IO", Order::shortest_io)
      .value("LONGEST_IO", Order::longest_io)
      .value("LEAST_WORK_LEFT", Order::least_work_left)
      .value("MOST_WORK_LEFT", Order::most_work_left)
      .value("IO_RATIO", Order::io_ratio);
  nb::enum_<JobEvent>(m, "JobEvent")
      .value("STARTED", JobEvent::started)
      .value("ENDED", JobEvent::ended)
      .value("WOKE", JobEvent::woke);
  nb::class_<EngineView>(m, "EngineView")
      .def_prop_ro("now", &EngineView::now)
      .def_prop_ro("jobs", &EngineView::jobs)
      .def_prop_ro("site", &EngineView::site)
      .def("progress", &EngineView::progress, "job"_a)
      .def("expected", &EngineView::expected, "request"_a)
      .def("done", &EngineView::done, "request"_a)
      .def("remaining", &EngineView::remaining, "request"_a)
      .def("work_left", &EngineView::work_left, "job"_a)
      .def("io_done", &EngineView::io_done, "job"_a)
      .def("age", &EngineView::age, "job"_a)
      .def("expected_of", &EngineView::expected_of, "serial"_a);
  nb::class_<penstock::TimelineColumns>(m, "TimelineColumns")
      .def_ro("job", &penstock::TimelineColumns::job)
      .def_ro("resource", &penstock::TimelineColumns::resource)
      .def_ro("start", &penstock::TimelineColumns::start)
      .def_ro("end", &penstock::TimelineColumns::end)
      .def_ro("share", &penstock::TimelineColumns::share);
  nb::class_<Result>(m, "Result")
      .def_ro("request", &Result::request)
      .def_ro("end", &Result::end)
      .def_ro("start", &Result::start)
      .def_ro("moved", &Result::moved)
      .def_ro("phase_ends", &Result::phase_ends)
      .def_ro("unfinished", &Result::unfinished)
      .def_ro("timeline", &Result::timeline);
  m.def("run", &penstock::run, "workload"_a, "site"_a, "sharing"_a, "host"_a.none(), "marks"_a,
        "timeline"_a);
}
