// The schedulers by name.

#include <stdexcept>
#include <string_view>

#include "schedulers/aioli.hpp"
#include "schedulers/fifo.hpp"
#include "schedulers/hbrr.hpp"
#include "schedulers/mlf.hpp"
#include "schedulers/sjf.hpp"
#include "schedulers/time_order.hpp"
#include "schedulers/twins.hpp"
#include "user_queue.hpp"

namespace penstock {
namespace {

struct Named {
  std::string_view name;
  std::unique_ptr<Scheduler> (*make)(const Settings&);
};

template <class Of>
std::unique_ptr<Scheduler> make(const Settings& settings) {
  return std::make_unique<Of>(settings);
}

constexpr Named KINDS[] = {
    {"fifo",
     [](const Settings&) -> std::unique_ptr<Scheduler> { return std::make_unique<Fifo>(); }},
    {"time-order", make<TimeOrder>},
    {"twins", make<Twins<WhenEmpty::sleep>>},
    {"twins-busy", make<Twins<WhenEmpty::next>>},
    {"twins-priority", make<TwinsPriority>},
    {"hbrr", make<Hbrr>},
    {"aioli", make<Aioli>},
    {"sjf", make<Sjf>},
    {"mlf", make<Mlf>},
};

}  // namespace

std::unique_ptr<UserQueue> make_scheduler(const Settings& settings) {
  constexpr std::uint64_t largest_quantum = std::uint64_t{1} << 40;
  if (settings.window == 0) throw std::invalid_argument("a window needs a length");
  if (settings.servers == 0) throw std::invalid_argument("there must be a storage server");
  if (settings.quantum == 0 || settings.quantum > largest_quantum) {
    throw std::invalid_argument("a quantum has from 1 byte to 1 TiB");
  }
  for (const Named& kind : KINDS) {
    if (kind.name == settings.scheduler) return std::make_unique<UserQueue>(settings, kind.make);
  }
  throw std::invalid_argument("unknown scheduler '" + settings.scheduler + "'");
}

Shares shares_named(const std::string& name) {
  if (name == "bytes") return Shares::bytes;
  if (name == "concurrency") return Shares::concurrency;
  throw std::invalid_argument("shares are of bytes or of concurrency, not of '" + name + "'");
}

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Named& kind : KINDS) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

}  // namespace penstock
