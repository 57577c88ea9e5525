// Which client of this host is read next, and whose message is acted upon: origins (users) take
// turns, and in a round each has a number of messages and of calls of its pages. What one sends
// beyond that waits in its own sockets and pages.
//
// The thread that polls has it to itself.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "peer.hpp"
#include "scheduler.hpp"

namespace penstock {

// `Client` has `origin` and `readable`, whether it is in its origin's queue; `Message` has
// `client`.
template <class Client, class Message>
class Rounds {
 public:
  static constexpr std::size_t messages = 64;  // of an origin in a round
  static constexpr std::uint32_t calls = 512;  // of its pages

  bool empty() const { return ready_at() == never; }
  // When the next round has something to do.
  Time ready_at() const {
    Time first = never;
    for (const auto& [origin, of_origin] : by_origin_) {
      if (!of_origin.idle()) first = std::min(first, of_origin.spent ? of_origin.next : 0);
    }
    return first;
  }

  // Its socket has something to be read.
  void add(Client& client) {
    if (std::exchange(client.readable, true)) return;
    by_origin_[client.origin].readable.push_back(&client);
  }

  void add(const Message& message) { by_origin_[message.client->origin].said.push_back(message); }

  // Reads one message of each client in turn. `receive(client, message)` is false if it has no
  // more.
  template <class Receive>
  void read(Time now, const Receive& receive) {
    for (auto& [origin, of_origin] : by_origin_) {
      if (of_origin.pauses(now)) continue;
      if (now >= of_origin.next) of_origin.renew();
      for (; of_origin.read < messages && !of_origin.readable.empty(); ++of_origin.read) {
        Client& client = *of_origin.readable.front();
        of_origin.readable.pop_front();
        client.readable = false;
        Message message;
        if (!receive(client, message)) continue;
        of_origin.said.push_back(message);
        client.readable = true;
        of_origin.readable.push_back(&client);
      }
    }
  }

  // Acts upon what was read. `act(message, calls)` takes the calls that it reads from the budget;
  // it is false if that did not suffice, and goes on with the same message in the next round.
  // An origin that has used up its numbers pauses, so that it does not take all of a processor.
  // Until then it is remembered: else who sends a little less at a time would never pause.
  template <class Act>
  void act(Time now, Time pause, const Act& act) {
    for (auto& [origin, of_origin] : by_origin_) {
      if (of_origin.pauses(now)) continue;
      if (!of_origin.said.empty() && now >= of_origin.next) of_origin.next = now + pause;
      while (!of_origin.said.empty() && act(of_origin.said.front(), of_origin.left)) {
        of_origin.said.pop_front();
      }
      of_origin.spent = of_origin.read >= messages || !of_origin.said.empty();
    }
    std::erase_if(by_origin_, [now](const auto& entry) {
      return entry.second.idle() && now >= entry.second.next;
    });
  }

  // It is read no more; what it said before is acted upon.
  void stop(Client& client) {
    if (!std::exchange(client.readable, false)) return;
    std::erase(by_origin_[client.origin].readable, &client);
  }

 private:
  struct OfOrigin {
    std::deque<Client*> readable;
    std::deque<Message> said;
    Time next = 0;         // its next round
    std::size_t read = 0;  // messages of this round
    std::uint32_t left = calls;
    bool spent = false;

    bool idle() const { return said.empty() && readable.empty(); }
    bool pauses(Time now) const { return spent && now < next; }
    void renew() {
      read = said.size();
      left = calls;
      spent = false;
    }
  };
  std::unordered_map<Origin, OfOrigin> by_origin_;
};

}  // namespace penstock
