// The Python binding of an I/O node: Python controls it, its threads never need the interpreter.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "node.hpp"
#include "privileges.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock {
namespace {

void set_window(Settings& settings, double seconds) {
  constexpr double longest = 60;
  // Also false for NaN, whose cast would be undefined.
  if (!(seconds > 0 && seconds <= longest)) {
    throw nb::value_error("a window is above zero and has 60 s at most");
  }
  settings.window = static_cast<std::uint64_t>(std::llround(seconds * 1e9));
  settings.window_seconds = seconds;
}

template <class T>
T value_of(nb::handle value, const std::string& name) {
  try {
    return nb::cast<T>(value);
  } catch (const std::bad_cast&) {
    throw nb::value_error((name + ": not such a number").c_str());
  }
}

// Fields that the settings name; others stay as they are.
void change(Settings& settings, std::uint64_t& stripe_size, const nb::dict& given) {
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "scheduler") {
      settings.scheduler = nb::cast<std::string>(value);
    } else if (name == "shares") {
      settings.shares = shares_named(nb::cast<std::string>(value));
    } else if (name == "window") {
      set_window(settings, value_of<double>(value, name));
    } else if (name == "quantum") {
      settings.quantum = value_of<std::uint64_t>(value, name);
    } else if (name == "aggregation") {
      settings.aggregation = value_of<std::uint64_t>(value, name);
    } else if (name == "servers") {
      settings.servers = value_of<std::uint32_t>(value, name);
    } else if (name == "stripe_size") {
      stripe_size = value_of<std::uint64_t>(value, name);
    } else if (name == "dirty_window") {
      settings.dirty_window = value_of<std::uint64_t>(value, name);
    } else if (name == "depth") {
      settings.depth = value_of<std::uint32_t>(value, name);
    } else {
      throw nb::value_error(("an I/O node has no setting '" + name + "'").c_str());
    }
  }
  if (settings.servers == 0 || stripe_size == 0 || settings.depth == 0 || settings.window == 0) {
    throw nb::value_error("servers, stripe size, depth and window are above zero");
  }
}

std::shared_ptr<Node> make(std::uint32_t number, std::uint64_t id, bool all_users,
                           std::uint32_t connections, std::uint32_t handles, double patience,
                           std::uint64_t memory, const nb::dict& settings) {
  NodeOptions options;
  options.id = id;
  options.all_users = all_users;
  options.limits.connections = connections;
  options.limits.handles = handles;
  options.limits.memory = memory;
  options.patience = static_cast<Time>(patience * 1e9);
  options.settings.io_node = number;
  change(options.settings, options.stripe_size, settings);
  return std::make_shared<Node>(options);
}

void configure(Node& node, const nb::dict& given) {
  Settings settings = node.settings();
  std::uint64_t stripe_size = node.stripe_size();
  change(settings, stripe_size, given);
  node.configure(settings, stripe_size);
}

nb::dict by_job(const std::map<std::string, std::uint64_t>& numbers) {
  nb::dict named;
  for (const auto& [job, number] : numbers) {
    // A client may call itself anything.
    const auto length = static_cast<Py_ssize_t>(job.size());
    named[nb::steal(PyUnicode_DecodeUTF8(job.data(), length, "replace"))] = number;
  }
  return named;
}

nb::dict measure(Node& node) {
  const Measurement measured = node.measure();
  nb::dict fields;
  fields["scheduler"] = measured.scheduler;
  fields["connections"] = measured.connections;
  fields["sessions"] = measured.sessions;
  fields["files"] = measured.files;
  fields["queued"] = measured.queued;
  const Counts& counts = measured.counts;
  fields["requests"] = counts.requests;
  fields["reads"] = counts.reads;
  fields["writes"] = counts.writes;
  fields["syncs"] = counts.syncs;
  fields["read_bytes"] = counts.read_bytes;
  fields["write_bytes"] = counts.write_bytes;
  fields["batches"] = counts.batches;
  fields["aggregated"] = counts.aggregated;
  fields["errors"] = counts.errors;
  fields["refused"] = counts.refused;
  fields["dropped"] = counts.dropped;
  fields["groups"] = by_job(measured.groups);
  fields["in_service"] = by_job(measured.in_service);
  return fields;
}

nb::dict observe(Node& node) {
  const Observation seen = node.observe();
  nb::dict fields;
  fields["seconds"] = static_cast<double>(seen.length) / 1e9;
  fields["busy"] = static_cast<double>(seen.busy) / 1e9;
  fields["reads"] = seen.reads;
  fields["writes"] = seen.writes;
  fields["read_bytes"] = seen.read_bytes;
  fields["write_bytes"] = seen.write_bytes;
  fields["handles"] = seen.handles;
  fields["clients"] = seen.clients;
  fields["smallest"] = seen.smallest;
  fields["largest"] = seen.largest;
  fields["asked"] = seen.requested_bytes;
  fields["distance"] = seen.distance;
  fields["forward"] = seen.forward;
  fields["queued"] = seen.queued;
  fields["sequential"] = seen.sequential;
  fields["strided"] = seen.strided;
  fields["shared"] = seen.shared;
  return fields;
}

nb::dict in_force(Node& node) {
  const Settings settings = node.settings();
  nb::dict fields;
  fields["scheduler"] = settings.scheduler;
  fields["window"] = settings.window_seconds;
  fields["quantum"] = settings.quantum;
  fields["aggregation"] = settings.aggregation;
  fields["servers"] = settings.servers;
  fields["depth"] = settings.depth;
  return fields;
}

}  // namespace
}  // namespace penstock

NB_MODULE(_ionode, m) {
  using penstock::Node;
  m.doc() = "The forwarding data plane; use it through penstock.live.ionode.process.";
  m.def("scheduler_names", &penstock::scheduler_names);
  m.def("give_up_privileges", &penstock::give_up_privileges, "user"_a, "group"_a);
  nb::class_<Node>(m, "Node")
      .def(nb::new_(&penstock::make), "number"_a, "id"_a, nb::kw_only(), "all_users"_a = false,
           "connections"_a = 4096, "handles"_a = 4096, "patience"_a = 30.0,
           "memory"_a = penstock::Limits().memory, "settings"_a = nb::dict())
      .def("listen_unix", &Node::listen_unix, "path"_a)
      .def(
          "listen_tcp",
          [](Node& node, const std::string& host, std::uint16_t port, const nb::bytes& token,
             const std::vector<std::string>& roots) {
            return node.listen_tcp(host, port, {token.c_str(), token.size()}, roots);
          },
          "host"_a, "port"_a, "token"_a, "roots"_a)
      .def(
          "own",
          [](Node& node, const std::vector<std::tuple<uid_t, uid_t, uid_t>>& ranges) {
            std::vector<penstock::SubordinateIds> ids;
            for (const auto& [first, count, owner] : ranges) ids.push_back({first, count, owner});
            node.own(std::move(ids));
          },
          "subordinate_ids"_a)
      .def("start", &Node::start)
      .def("configure", &penstock::configure, "settings"_a)
      .def("weigh", &Node::weigh, "weights"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("measure", &penstock::measure)
      .def("observe", &penstock::observe)
      .def("settings", &penstock::in_force)
      .def("drain", &Node::drain, "seconds"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Node::stop, "seconds"_a = 5.0, nb::call_guard<nb::gil_scoped_release>());
}
