// Credits without clock, socket or thread: who may make calls, how many, and until when.

#include "permits.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"

using namespace penstock;

namespace {

constexpr std::uint64_t MiB = 1 << 20;
constexpr Time second = 1'000'000'000;

// Threads of clients at an I/O node with a number of places. Each has a page of its own.
struct Desk {
  explicit Desk(std::uint32_t places, const std::string& scheduler = "fifo") {
    Settings settings;
    settings.scheduler = scheduler;
    rules = {places, scheduler != "fifo"};
    queue = make_scheduler(settings);
  }

  // A thread of a group and user; returns its number.
  std::size_t thread(std::uint64_t group, uid_t user = 1) {
    pages.push_back(std::make_unique<penstock_permit>());
    // What a permit's process is, is nothing to credits.
    static char none;
    permits_of.push_back(
        std::make_unique<Permit>(reinterpret_cast<Caller&>(none), *pages.back(), user));
    permits_of.back()->group = group;
    return pages.size() - 1;
  }

  void ask(std::size_t thread, std::uint64_t bytes, std::uint64_t offset = 0) {
    Permit& permit = *permits_of[thread];
    const penstock_permit_message question{
        PENSTOCK_ASK, 0, permit.asked + 1, PENSTOCK_CALL_WRITE, 7, offset, bytes};
    if (permits.ask(permit, question, rules, *queue, now)) {
      permit.file = 7;
      queue->add(permit);
    }
  }

  // Grants while there are places, as a node does; recalls if there are too few.
  void serve() {
    while (permits.held() < rules.places) {
      const Batch batch = queue->take(now, {rules.places, free()});
      if (batch.empty()) return;
      permits.grant(batch, rules, *queue, now);
    }
    if (queue->size() > 0) permits.recall(rules, *queue, now);
    permits.look(permits.held() >= rules.places, *queue, now);
    if (permits.held() < rules.places && queue->size() > 0) serve();
  }

  std::uint32_t free() const { return rules.places - static_cast<std::uint32_t>(permits.held()); }

  bool answered(std::size_t thread) const {
    return pages[thread]->answered == permits_of[thread]->asked;
  }
  bool recalled(std::size_t thread) const {
    return pages[thread]->recalled == permits_of[thread]->asked;
  }

  // The thread makes a call under its credit.
  void call(std::size_t thread, std::uint32_t bytes) {
    penstock_permit& page = *pages[thread];
    page.call[page.calls_made % PENSTOCK_CALLS_KEPT] = {7, 0, now, bytes, PENSTOCK_CALL_WRITE};
    ++page.calls_made;
  }

  std::uint64_t collect(std::size_t thread) {
    std::uint64_t bytes = 0;
    std::uint32_t budget = PENSTOCK_CALLS_KEPT;
    permits.collect(*permits_of[thread], budget,
                    [&](const Called& called) { bytes += called.bytes; });
    return bytes;
  }

  void give_back(std::size_t thread) {
    collect(thread);
    permits.give_back(*permits_of[thread], permits_of[thread]->asked, *queue, now);
  }

  CreditRules rules;
  std::unique_ptr<UserQueue> queue;
  Permits permits;
  std::vector<std::unique_ptr<penstock_permit>> pages;
  std::vector<std::unique_ptr<Permit>> permits_of;
  Time now = second;
};

// While nobody waits a credit doubles with each question, from a quantum to the most there is.
void credits_grow_while_nobody_waits() {
  Desk desk(4);
  const std::size_t thread = desk.thread(1);
  std::uint64_t expected = Permits::quantum;
  for (int k = 0; k < 10; ++k) {
    desk.ask(thread, 4096);
    desk.serve();
    CHECK(desk.answered(thread) && desk.pages[thread]->bytes == expected);
    CHECK(desk.pages[thread]->terms == 0 && desk.pages[thread]->calls == PENSTOCK_CALLS_KEPT);
    CHECK(desk.pages[thread]->until == desk.now + Permits::lasts);
    expected = std::min(2 * expected, Permits::most_generous);
  }
  desk.ask(thread, 100 * MiB);
  desk.serve();
  CHECK(desk.pages[thread]->bytes == 100 * MiB);
}

// Jobs of weights 1, 1, 2 and 4 move bytes in that proportion through one place.
void bytes_are_by_weight() {
  Desk desk(1);
  const std::array<double, 4> weights{1, 1, 2, 4};
  std::array<std::uint64_t, 4> moved{};
  for (std::uint64_t job = 0; job < 4; ++job) {
    desk.queue->weigh(1, job, weights[job]);
    for (int k = 0; k < 4; ++k) desk.ask(desk.thread(job), 4096);
  }
  for (int round = 0; round < 400; ++round) {
    desk.serve();
    for (std::size_t k = 0; k < desk.pages.size(); ++k) {
      if (desk.permits_of[k]->state != Permit::State::held) continue;
      const auto bytes = static_cast<std::uint32_t>(desk.pages[k]->bytes);
      desk.call(k, bytes);
      if (round >= 40) moved[k / 4] += bytes;
      desk.give_back(k);
      desk.ask(k, 4096);
      desk.now += 1'000'000;
    }
  }
  for (std::size_t job = 0; job < 4; ++job) {
    const double share = static_cast<double>(moved[job]) / static_cast<double>(moved[0]);
    CHECK(share > 0.9 * weights[job] && share < 1.1 * weights[job]);
  }
}

// Who waits gets the place of one that does not use it at once, and of one in a call when that
// is over.
void large_credits_are_recalled_when_somebody_waits() {
  Desk desk(1);
  const std::size_t first = desk.thread(1), second_one = desk.thread(2), third = desk.thread(3);
  desk.ask(first, 4096);
  desk.serve();
  desk.ask(second_one, 4096);
  desk.serve();
  CHECK(desk.recalled(first) && desk.answered(second_one));
  CHECK((desk.pages[second_one]->terms & PENSTOCK_METERED) != 0);
  desk.pages[second_one]->in_call = desk.permits_of[second_one]->asked;
  desk.ask(third, 4096);
  desk.now += Permits::idle_after;
  desk.serve();
  CHECK(!desk.answered(third));
  desk.pages[second_one]->in_call = 0;
  desk.give_back(second_one);
  desk.serve();
  CHECK(desk.answered(third));
}

// A call that does not come back loses its place, and a user with as many of them as there are
// places is not managed until one does.
void calls_that_hang_are_their_own_users() {
  Desk desk(2);
  std::vector<std::size_t> hostile;
  for (int k = 0; k < 3; ++k) hostile.push_back(desk.thread(1, 1));
  for (int k = 0; k < 2; ++k) {
    desk.ask(hostile[static_cast<std::size_t>(k)], 4096);
    desk.serve();
    desk.pages[static_cast<std::size_t>(k)]->in_call = 1;
  }
  const std::size_t honest = desk.thread(2, 2);
  desk.ask(honest, 4096);
  desk.serve();
  CHECK(!desk.answered(honest));
  desk.now += Permits::hangs_after;
  desk.serve();
  CHECK(desk.answered(honest) && desk.permits.held() == 1);
  desk.ask(hostile[2], 4096);
  CHECK(desk.answered(hostile[2]) && desk.pages[hostile[2]]->terms == PENSTOCK_UNMANAGED);
  desk.pages[hostile[0]]->in_call = 0;
  desk.give_back(hostile[0]);
  desk.ask(hostile[2], 4096);
  desk.serve();
  CHECK(desk.answered(hostile[2]) && (desk.pages[hostile[2]]->terms & PENSTOCK_UNMANAGED) == 0);
}

// Calls that are only slow, and lost their places to another user, do not hang: their user is
// managed on. After 2 s they do.
void slow_calls_are_managed() {
  Desk desk(2);
  std::vector<std::size_t> slow;
  for (int k = 0; k < 3; ++k) slow.push_back(desk.thread(1, 1));
  const std::size_t other = desk.thread(2, 2);
  for (std::size_t k = 0; k < 2; ++k) desk.ask(slow[k], 4096);
  desk.serve();
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t k = 0; k < 2; ++k) desk.pages[slow[k]]->in_call = 1;
    desk.ask(other, 4096);
    desk.serve();
    desk.now += Permits::returns_within;
    desk.serve();
    CHECK(desk.answered(other));
    desk.give_back(other);
    desk.now += 100'000'000;  // the other's part is free again
    desk.ask(slow[2], 4096);
    desk.serve();
    CHECK(desk.answered(slow[2]) && (desk.pages[slow[2]]->terms & PENSTOCK_UNMANAGED) == 0);
    desk.pages[slow[2]]->in_call = 1;
  }
  desk.now += Permits::hangs_after;
  const std::size_t fourth = desk.thread(1, 1);
  desk.ask(fourth, 4096);
  CHECK(desk.answered(fourth) && desk.pages[fourth]->terms == PENSTOCK_UNMANAGED);
  for (std::size_t k = 0; k < 3; ++k) {
    desk.pages[slow[k]]->in_call = 0;
    desk.give_back(slow[k]);
  }
  desk.ask(fourth, 4096);
  desk.serve();
  CHECK((desk.pages[fourth]->terms & PENSTOCK_UNMANAGED) == 0);
}

// A page that says that calls are made keeps a place no longer than a credit lasts and may hang.
void claims_of_progress_keep_no_place() {
  Desk desk(1);
  const std::size_t hostile = desk.thread(1, 1), honest = desk.thread(2, 2);
  desk.ask(hostile, 1);
  desk.serve();
  desk.pages[hostile]->in_call = 1;
  desk.ask(honest, 4096);
  for (Time end = desk.now + Permits::lasts + Permits::hangs_after; desk.now < end;) {
    desk.now += Permits::idle_after / 2;
    ++desk.pages[hostile]->calls_made;
    desk.serve();
  }
  desk.now += Permits::idle_after;
  desk.serve();
  CHECK(desk.answered(honest));
}

// Who holds all places, whatever its pages say, keeps another user waiting no longer than it takes
// to give one back; then its part of the places is all that counts, and the other has its own at
// once.
void users_share_the_places() {
  constexpr std::size_t places = 16, threads = 48;
  Desk desk(places);
  std::vector<std::size_t> hostile;
  for (std::size_t k = 0; k < threads; ++k) hostile.push_back(desk.thread(1, 1));
  const auto hold = [&] {
    for (const std::size_t k : hostile) {
      desk.pages[k]->in_call = 1;
      ++desk.pages[k]->calls_made;
    }
  };
  for (const std::size_t k : hostile) desk.ask(k, 1);
  desk.serve();
  hold();
  CHECK(desk.permits.held() == places);
  const std::size_t honest = desk.thread(2, 2);
  desk.ask(honest, MiB);
  desk.serve();
  CHECK(!desk.answered(honest));
  desk.now += Permits::returns_within;
  desk.serve();
  CHECK(desk.answered(honest));
  for (int k = 0; k < 1000; ++k) {
    desk.call(honest, MiB);
    desk.give_back(honest);
    hold();
    desk.now += 100'000;
    desk.serve();
    hold();
    desk.now += 100'000;
    if (k % 10 == 0) desk.ask(hostile[static_cast<std::size_t>(k) % threads], 1);
    desk.serve();
    hold();
    desk.ask(honest, MiB);
    desk.serve();
    CHECK(desk.answered(honest));
  }
  const std::size_t second_one = desk.thread(2, 2);
  desk.ask(second_one, MiB);
  desk.serve();
  for (Time waited = 0; !desk.answered(second_one); waited += Permits::idle_after) {
    CHECK(waited <= 2 * Permits::returns_within);
    desk.now += Permits::idle_after;
    desk.serve();
  }
}

// The others may use what a user leaves, but for one place.
void places_that_a_user_does_not_use_are_others() {
  Desk desk(8);
  const std::size_t rare = desk.thread(2, 2);
  desk.ask(rare, 1);
  desk.serve();
  for (int k = 0; k < 16; ++k) desk.ask(desk.thread(1, 1), 1);
  for (const auto& page : desk.pages) page->in_call = 1;
  desk.serve();
  CHECK(desk.permits.held() == 7);
  desk.give_back(rare);
  desk.serve();
  CHECK(desk.permits.held() == 7 && desk.queue->ready_at(desk.now, {8, 1}) > desk.now);
  desk.now = desk.queue->ready_at(desk.now, {8, 1});
  desk.serve();
  CHECK(desk.permits.held() == 8);
}

// Users of weights 3 and 1 hold 6 and 2 of 8 places, however many of their threads wait.
void places_are_by_weight() {
  Desk desk(8);
  desk.queue->weigh(1, 1, 3.0);
  std::array<int, 3> held{};
  for (int k = 0; k < 20; ++k) {
    desk.ask(desk.thread(1, 1), MiB);
    desk.ask(desk.thread(2, 2), MiB);
  }
  desk.serve();
  for (const auto& permit : desk.permits_of) {
    if (permit->state == Permit::State::held) ++held[permit->uid];
  }
  CHECK(held[1] == 6 && held[2] == 2);
}

void who_leaves_gives_back() {
  Desk desk(1);
  const std::size_t first = desk.thread(1), second_one = desk.thread(2), third = desk.thread(3);
  desk.ask(first, 4096);
  desk.serve();
  desk.pages[first]->in_call = 1;
  desk.ask(second_one, 4096);
  desk.ask(third, 4096);
  desk.permits.leave(*desk.permits_of[second_one], *desk.queue, desk.now);
  desk.permits.leave(*desk.permits_of[first], *desk.queue, desk.now);
  desk.serve();
  CHECK(desk.answered(third) && !desk.answered(second_one) && desk.permits.held() == 1);
  desk.permits.leave(*desk.permits_of[third], *desk.queue, desk.now);
  CHECK(desk.permits.held() == 0 && desk.queue->in_service(1, 3) == 0);
}

// Those that wait see that the I/O node lives, and nothing is due where nobody waits.
void heartbeats() {
  Desk desk(1);
  const std::size_t first = desk.thread(1), second_one = desk.thread(2);
  desk.ask(first, 4096);
  desk.serve();
  desk.pages[first]->in_call = 1;
  CHECK(desk.permits.look_at(true) == never);
  desk.ask(second_one, 4096);
  const std::uint32_t before = desk.pages[second_one]->heartbeat;
  for (int k = 0; k < 5; ++k) {
    desk.now += Permits::beat_every;
    CHECK(desk.permits.look_at(true) <= desk.now);
    desk.permits.look(true, *desk.queue, desk.now);
  }
  CHECK(desk.pages[second_one]->heartbeat == before + 5 && desk.pages[first]->heartbeat == 0);
}

// Under another scheduler each call asks, and has a credit for itself alone.
void each_call_asks_where_calls_are_ordered() {
  Desk desk(1, "sjf");
  const std::size_t holder = desk.thread(1), large = desk.thread(1), small = desk.thread(1);
  desk.ask(holder, 4096);
  desk.serve();
  CHECK(desk.pages[holder]->calls == 1 && desk.pages[holder]->bytes == 4096);
  desk.pages[holder]->in_call = 1;
  desk.ask(large, 64 * MiB);
  desk.ask(small, 4096, 128 * MiB);
  desk.pages[holder]->in_call = 0;
  desk.give_back(holder);
  desk.serve();
  const std::size_t next = desk.answered(small) ? small : large;
  CHECK(desk.answered(small) != desk.answered(large));
  CHECK(desk.pages[next]->calls == 1 && desk.pages[next]->bytes == desk.permits_of[next]->wanted);
}

// Bytes and calls count as far as they were granted, whatever the page says.
void claims_beyond_a_credit_do_not_count() {
  Desk desk(1);
  const std::size_t thread = desk.thread(1);
  desk.ask(thread, 4096);
  desk.serve();
  desk.call(thread, 4096);
  desk.call(thread, 100);
  CHECK(desk.collect(thread) == 4196 && desk.collect(thread) == 0);
  for (int k = 0; k < 3; ++k) desk.call(thread, 3u << 30);
  CHECK(desk.collect(thread) == Permits::quantum - 4196);
  for (const std::uint64_t made : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    desk.pages[thread]->calls_made = made;
    CHECK(desk.collect(thread) == 0);
  }
  desk.ask(thread, ~std::uint64_t{0});
  desk.serve();
  CHECK(desk.pages[thread]->bytes <= std::uint64_t{1} << 31);
}

}  // namespace

int main() {
  credits_grow_while_nobody_waits();
  bytes_are_by_weight();
  large_credits_are_recalled_when_somebody_waits();
  calls_that_hang_are_their_own_users();
  slow_calls_are_managed();
  claims_of_progress_keep_no_place();
  users_share_the_places();
  places_that_a_user_does_not_use_are_others();
  places_are_by_weight();
  who_leaves_gives_back();
  heartbeats();
  each_call_asks_where_calls_are_ordered();
  claims_beyond_a_credit_do_not_count();
  std::puts("permits: all hold");
}
