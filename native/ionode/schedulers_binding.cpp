// Python's door to the schedulers: for tests, and to replay recorded requests.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "stripe_map.hpp"
#include "user_queue.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

// A fair queue that owns its requests, which are known by the numbers that the caller gave them.
class Owning {
 public:
  explicit Owning(const Settings& settings) : queue_(make_scheduler(settings)) {}

  void add(std::uint64_t id, Time arrived, std::uint64_t file, const std::string& kind,
           std::uint64_t offset, std::uint32_t bytes, std::uint32_t server, std::uint64_t group,
           std::uint64_t user) {
    if (kind == "sync" && bytes != 0) throw std::invalid_argument("a sync has no bytes");
    auto request = std::make_unique<Request>(
        Request{arrived, file, offset, bytes, server, group, kind_of(kind)});
    request->user = user;
    queue_->add(*request);
    ids_.emplace(request.get(), id);
    requests_.emplace(request.get(), std::move(request));
  }

  std::vector<std::uint64_t> take(Time now) { return give_back(queue_->take(now)); }
  std::vector<std::uint64_t> drain() { return give_back(queue_->drain()); }
  void served(std::uint64_t group, std::uint64_t user) {
    Request of_job;
    of_job.group = group;
    of_job.user = user;
    queue_->served(of_job);
  }
  void weigh(std::uint64_t group, double weight, std::uint64_t user) {
    queue_->weigh(user, group, weight);
  }
  std::size_t size() const { return queue_->size(); }
  std::size_t groups() const { return queue_->groups(); }

  std::optional<Time> ready_at(Time now) const {
    const Time ready = queue_->ready_at(now);
    return ready == never ? std::nullopt : std::optional(ready);
  }

 private:
  static Kind kind_of(const std::string& name) {
    if (name == "read") return Kind::read;
    if (name == "write") return Kind::write;
    if (name == "sync") return Kind::sync;
    throw std::invalid_argument("a request is a read, a write or a sync, not '" + name + "'");
  }

  template <class Requests>
  std::vector<std::uint64_t> give_back(const Requests& given) {
    std::vector<std::uint64_t> ids;
    for (const Request* request : given) {
      ids.push_back(ids_.extract(request).mapped());
      requests_.erase(request);
    }
    return ids;
  }

  std::unique_ptr<UserQueue> queue_;
  std::unordered_map<const Request*, std::uint64_t> ids_;
  std::unordered_map<const Request*, std::unique_ptr<Request>> requests_;
};

// The storage target of a byte by Lustre's layout attribute, if it is one.
std::optional<std::uint32_t> lustre_server(const nb::bytes& layout, std::uint64_t offset) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(layout.c_str());
  const auto map = StripeMap::from_lustre({bytes, layout.size()});
  return map ? std::optional(map->server(offset)) : std::nullopt;
}

}  // namespace
}  // namespace penstock

NB_MODULE(_schedulers, m) {
  using penstock::Owning;
  using penstock::Settings;
  m.doc() = "The I/O nodes' request schedulers; parity.reference.schedulers has their twins.";
  m.def("names", &penstock::scheduler_names);
  m.def("lustre_server", &penstock::lustre_server, "layout"_a, "offset"_a);
  nb::class_<Owning>(m, "Scheduler")
      .def(
          "__init__",
          [](Owning* self, const std::string& scheduler, std::uint64_t window,
             std::uint64_t quantum, std::uint64_t aggregation, std::uint32_t servers,
             std::uint32_t io_node, const std::string& shares) {
            Settings settings;
            settings.scheduler = scheduler;
            settings.window = window;
            settings.quantum = quantum;
            settings.aggregation = aggregation;
            settings.servers = servers;
            settings.io_node = io_node;
            settings.shares = penstock::shares_named(shares);
            new (self) Owning(settings);
          },
          "scheduler"_a, nb::kw_only(), "window"_a = Settings{}.window,
          "quantum"_a = Settings{}.quantum, "aggregation"_a = Settings{}.aggregation,
          "servers"_a = Settings{}.servers, "io_node"_a = Settings{}.io_node, "shares"_a = "bytes")
      .def("add", &Owning::add, "id"_a, "arrived"_a, "file"_a, "kind"_a, "offset"_a, "bytes"_a,
           "server"_a = 0, "group"_a = 0, "user"_a = 0)
      .def("take", &Owning::take, "now"_a)
      .def("served", &Owning::served, "group"_a, "user"_a = 0)
      .def("ready_at", &Owning::ready_at, "now"_a)
      .def("drain", &Owning::drain)
      .def("weigh", &Owning::weigh, "group"_a, "weight"_a, "user"_a = 0)
      .def("__len__", &Owning::size)
      .def_prop_ro("groups", &Owning::groups);
}
