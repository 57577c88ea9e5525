// Whose messages are read and acted upon, without sockets: one user's flood costs that user.

#include "rounds.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "check.hpp"

using namespace penstock;

namespace {

Origin user(unsigned number) {
  Origin origin;
  origin.name[1] = static_cast<std::byte>(number);
  return origin;
}

// What it still has to say, and how many calls its page has for each message.
struct Client {
  Origin origin;
  std::size_t messages = 0;
  std::uint32_t calls = 0;
  std::uint32_t known = 0;
  std::size_t answered = 0;
  bool readable = false;
};

struct Message {
  Client* client;
};

using Desk = Rounds<Client, Message>;

void round(Desk& desk, Time now = 0, Time pause = 0) {
  desk.read(now, [](Client& client, Message& message) {
    if (client.messages == 0) return false;
    --client.messages;
    message = {&client};
    return true;
  });
  desk.act(now, pause, [](const Message& message, std::uint32_t& budget) {
    Client& client = *message.client;
    const std::uint32_t taken = std::min(client.calls - client.known, budget);
    budget -= taken;
    client.known += taken;
    if (client.known < client.calls) return false;
    client.known = 0;
    ++client.answered;
    return true;
  });
}

// However many connections a user has, and whatever they send, another's message is of this round.
void a_flood_costs_its_own_user() {
  Desk desk;
  std::vector<Client> hostile(1000, {user(1), 1000});
  for (Client& client : hostile) desk.add(client);
  for (std::size_t asked = 1; asked <= 50; ++asked) {
    Client honest{user(2), 1};
    desk.add(honest);
    round(desk);
    CHECK(honest.answered == 1);
    std::size_t answered = 0;
    for (const Client& client : hostile) answered += client.answered;
    CHECK(answered == asked * Desk::messages);
  }
}

// Calls of pages are read in slices; a message is acted upon when all before it are known.
void calls_are_read_in_slices() {
  Desk desk;
  Client hostile{user(1), 100, 1024}, honest{user(2), 1, 10};
  desk.add(hostile);
  desk.add(honest);
  round(desk);
  CHECK(hostile.answered == 0 && hostile.known == Desk::calls && honest.answered == 1);
  round(desk);
  CHECK(hostile.answered == 1);
  for (int k = 0; k < 198; ++k) round(desk);
  CHECK(hostile.answered == 100 && !hostile.readable && desk.empty());
}

// Connections of one user take turns as well.
void connections_of_a_user_take_turns() {
  Desk desk;
  std::vector<Client> clients(Desk::messages / 2, {user(1), 10});
  for (Client& client : clients) desk.add(client);
  round(desk);
  for (const Client& client : clients) CHECK(client.answered == 2);
}

void who_is_stopped_is_not_read() {
  Desk desk;
  Client first{user(1), 5}, second{user(1), 5};
  desk.add(first);
  desk.add(second);
  desk.stop(first);
  round(desk);
  CHECK(first.answered == 0 && second.answered == 5 && desk.empty());
}

// Beside others a flood is read now and then, and they are read at once.
void a_flood_pauses() {
  constexpr Time pause = 500;
  Desk desk;
  Client hostile{user(1), 1000};
  desk.add(hostile);
  for (Time now = 0; now < 10 * pause; now += pause / 10) {
    Client honest{user(2), 1};
    desk.add(honest);
    round(desk, now, pause);
    CHECK(honest.answered == 1 && hostile.answered == Desk::messages * (1 + now / pause));
    CHECK(desk.ready_at() == (1 + now / pause) * pause);
  }
}

// So is one whose messages come a few at a time, and leave nothing to be read in between.
void a_flood_of_little_pauses() {
  constexpr Time pause = 500;
  Desk desk;
  Client hostile{user(1)};
  for (Time now = 0; now < 10 * pause; now += pause / 100) {
    hostile.messages = std::max<std::size_t>(hostile.messages, Desk::messages - 1);
    desk.add(hostile);
    Client honest{user(2), 1};
    if (now % (pause / 10) == 0) desk.add(honest);
    round(desk, now, pause);
    CHECK(now % (pause / 10) != 0 || honest.answered == 1);
    CHECK(hostile.answered <= Desk::messages * static_cast<std::size_t>(1 + now / pause));
  }
  hostile.messages = 0;
  round(desk, 20 * pause, pause);
  CHECK(desk.empty() && desk.ready_at() == never);
}

}  // namespace

int main() {
  a_flood_of_little_pauses();
  a_flood_pauses();
  a_flood_costs_its_own_user();
  calls_are_read_in_slices();
  connections_of_a_user_take_turns();
  who_is_stopped_is_not_read();
  std::puts("rounds: all hold");
}
