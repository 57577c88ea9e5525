#include "queues.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace penstock {
namespace {

// A call that took so long is worth a wait for those it served, of an eighth of that and at most
// this.
constexpr Time worth_holding = 200'000;
constexpr Time longest_hold = 500'000;
// With places that are not given back, and how many times the places there are may be in service.
constexpr Time patience_with_places = 250'000'000;
constexpr std::uint64_t beyond_depth = 4;

// Schedulers that put requests of a file together whatever the time.
bool anticipates(const std::string& scheduler) {
  return scheduler != "fifo" && !scheduler.starts_with("twins");
}

const Origin& origin_of(const Request& request) {
  return static_cast<const Exchange&>(request).connection->origin;
}

}  // namespace

Queues::Queues(const Settings& settings, std::uint64_t stripe_size, bool all_users)
    : all_users_(all_users),
      settings_(settings),
      stripe_size_(stripe_size),
      stripes_(StripeMap::fixed(stripe_size, settings.servers)),
      dirty_window_(settings.dirty_window),
      scheduler_(make_scheduler(settings)) {}

void Queues::configure(const Lock& lock, const Settings& settings, std::uint64_t stripe_size,
                       Sessions& sessions) {
  auto next = make_scheduler(settings);
  const std::vector<Request*> queued = scheduler_->drain();
  next->take_over(*scheduler_);
  scheduler_ = std::move(next);
  settings_ = settings;
  dirty_window_ = settings.dirty_window;
  stripe_size_ = stripe_size;
  stripes_ = StripeMap::fixed(stripe_size, settings.servers);
  held_until_ = 0;
  returning_ = 0;
  for (const auto& [key, group] : sessions.groups()) weigh(lock, *group, sessions);
  for (Request* request : queued) {
    request->server = request->permit ? stripes_.server(request->offset) % settings_.servers
                                      : server_of(static_cast<const Exchange&>(*request));
    scheduler_->add(*request);
  }
}

void Queues::weigh(const Lock& lock, const Weights& weights, Sessions& sessions) {
  weights_ = weights;
  for (const auto& [key, group] : sessions.groups()) weigh(lock, *group, sessions);
}

void Queues::weigh(const Lock&, Group& group, Sessions& sessions) {
  sessions.set_known(group, is_known(group));
  if (!group.known) return;
  const auto entry = weights_.find(public_name(group));
  const double weight = entry == weights_.end() ? 1.0 : entry->second;
  scheduler_->weigh(group.uid, group.id, weight);
}

// A job's name is its owner's choice: where there are several owners, it must not get the weight
// that another's job of that name was given.
std::string Queues::public_name(const Group& group) const {
  return all_users_ ? std::to_string(group.uid) + "/" + group.job : group.job;
}

bool Queues::is_known(const Group& group) const {
  return !all_users_ || weights_.contains(public_name(group));
}

std::uint32_t Queues::in_service(const Lock&, const Group& group) const {
  return scheduler_->in_service(group.uid, group.id);
}

// A site with more targets than the settings say shares their queues.
std::uint32_t Queues::server_of(const Exchange& exchange) const {
  return exchange.open_file->server(exchange.offset, stripes_) % settings_.servers;
}

void Queues::add(const Lock&, Exchange& exchange) {
  exchange.server = server_of(exchange);
  scheduler_->add(exchange);
  returned();
}

// Clients whose requests were served together come back at about the same time, with requests that
// continue them. Where a call is dear, they are waited for: else those that came meanwhile are
// served first and alone, and the two halves never meet again.
void Queues::returned() {
  if (returning_ > 0 && --returning_ == 0) held_until_ = 0;
}

void Queues::add_left(const Lock&, std::vector<std::shared_ptr<OpenFile>> files) {
  for (auto& file : files) {
    if (file != nullptr) left_files_.push_back(std::move(file));
  }
}

Exchange* Queues::take_chore(const Lock&) {
  while (!chores_.empty() && (has_room() || chores_.front()->answered)) {
    Exchange& exchange = *chores_.front();
    chores_.pop_front();
    if (exchange.answered || !is_held_back(origin_of(exchange))) return &exchange;
    held_back_[origin_of(exchange)].push_back(&exchange);
  }
  return nullptr;
}

std::shared_ptr<OpenFile> Queues::take_left_file(const Lock&) {
  if (left_files_.empty() || !has_room()) return nullptr;
  std::shared_ptr<OpenFile> file = std::move(left_files_.back());
  left_files_.pop_back();
  return file;
}

Batch Queues::take(const Lock&, Time now) {
  for (;;) {
    Batch batch = take_any(now);
    if (batch.empty() || batch.front()->permit || !is_held_back(origin_of(*batch.front())))
      return batch;
    hold_back(batch);
  }
}

Batch Queues::take_any(Time now) {
  if (now < held_until_) return {};
  if (has_room()) return scheduler_->take(now, places());
  return beyond_depth_at() <= now ? scheduler_->take_of_unserved(now) : Batch();
}

Queues::Serving Queues::begin_service(const Lock&, const Origin& origin, Time now) {
  ++in_service_;
  return services_.insert(services_.end(), {origin, now});
}

bool Queues::end_service(const Lock&, Serving service, Time now) {
  returned_at_ = now;
  bool again = false;
  if (service->hangs) {
    const auto of_origin = hanging_.find(service->origin);
    if (--of_origin->second == 0) hanging_.erase(of_origin);
    again = queue_again(service->origin);
  } else {
    --in_service_;
  }
  services_.erase(service);
  return again;
}

void Queues::served(const Lock&, const Batch& batch, Time began, Time took) {
  scheduler_->served(*batch.front());
  if (took < worth_holding || !anticipates(settings_.scheduler)) return;
  held_until_ = began + took + std::min<Time>(took / 8, longest_hold);
  returning_ = static_cast<std::uint32_t>(batch.size());
}

bool Queues::is_held_back(const Origin& origin) const {
  const auto of_origin = hanging_.find(origin);
  return of_origin != hanging_.end() && of_origin->second >= settings_.depth;
}

void Queues::hold_back(const Batch& batch) {
  scheduler_->served(*batch.front());
  for (Request* request : batch)
    held_back_[origin_of(*request)].push_back(static_cast<Exchange*>(request));
}

bool Queues::queue_again(const Origin& origin) {
  const auto of_origin = held_back_.find(origin);
  if (of_origin == held_back_.end()) return false;
  for (Exchange* exchange : std::exchange(of_origin->second, {})) {
    if (exchange->open_file == nullptr) {
      chores_.push_back(exchange);
    } else {
      exchange->server = server_of(*exchange);
      scheduler_->add(*exchange);
    }
  }
  held_back_.erase(of_origin);
  return true;
}

void Queues::set_hanging_aside(Time now) {
  if (hangs_at() > now) return;
  for (Service& service : services_) {
    if (service.hangs || service.began + Permits::hangs_after > now) continue;
    service.hangs = true;
    --in_service_;
    ++hanging_[service.origin];
  }
}

Time Queues::hangs_at() const {
  if (has_room() || (scheduler_->size() == 0 && chores_.empty() && left_files_.empty()))
    return never;
  const auto first = std::find_if(services_.begin(), services_.end(),
                                  [](const Service& service) { return !service.hangs; });
  return first == services_.end() ? never : first->began + Permits::hangs_after;
}

// All places are taken, and none was given back for some time: a job that has none gets one more.
// Until those that do not come back are known to hang, nobody waits for them any longer.
Time Queues::beyond_depth_at() const {
  if (scheduler_->size() == 0 || taken() >= beyond_depth * settings_.depth) return never;
  const Time since = scheduler_->unserved_since();
  return since == never ? never : std::max(since, returned_at_) + patience_with_places;
}

bool Queues::ask(const Lock&, Permit& permit, const penstock_permit_message& question, Time now) {
  return permits_.ask(permit, question, credit_rules(), *scheduler_, now);
}

void Queues::add(const Lock&, Permit& permit) {
  permit.server = stripes_.server(permit.offset) % settings_.servers;
  scheduler_->add(permit);
}

void Queues::grant(const Lock&, const Batch& batch, Time now) {
  permits_.grant(batch, credit_rules(), *scheduler_, now);
}

void Queues::give_back(const Lock&, Permit& permit, std::uint32_t number, Time now) {
  permits_.give_back(permit, number, *scheduler_, now);
}

void Queues::leave(const Lock&, Permit& permit, Time now) {
  permits_.leave(permit, *scheduler_, now);
}

void Queues::make_room(const Lock&, Time now) {
  set_hanging_aside(now);
  if (std::exchange(releases_, permits_.releases()) != permits_.releases()) returned_at_ = now;
  if (scheduler_->size() > 0 && !has_room()) permits_.recall(credit_rules(), *scheduler_, now);
  permits_.look(!has_room(), *scheduler_, now);
}

Time Queues::deadline(const Lock&, Time now) const {
  const bool room = has_room();
  if (room && (!chores_.empty() || !left_files_.empty())) return now;
  Time until = room ? scheduler_->ready_at(now, places()) : never;
  if (until != never) until = std::max(until, held_until_);
  until = std::min({until, permits_.look_at(!room), hangs_at()});
  return room ? until : std::min(until, beyond_depth_at());
}

bool Queues::is_ready_before(const Lock&, Time until, Time now) const {
  return has_room() && scheduler_->ready_at(now, places()) < until;
}

bool Queues::empty(const Lock&) const {
  return services_.empty() && held_back_.empty() && hanging_.empty() && chores_.empty() &&
         left_files_.empty() && in_service_ == 0 && permits_.held() == 0 && scheduler_->size() == 0;
}

}  // namespace penstock
