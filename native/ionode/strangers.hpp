// Who has connected and has not said who it is. Both kinds of bound let the oldest give way, for a
// client that means it says who it is at once: of one origin, so that it does not displace others,
// and of all together, so that those of many addresses leave descriptors to the clients that have
// said who they are.
//
// Pure: the caller passes the time and holds the lock.

#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <unordered_map>

#include "peer.hpp"
#include "scheduler.hpp"

namespace penstock {

class Strangers {
 public:
  static constexpr Time identify_within = 10'000'000'000;

  Strangers(std::size_t of_origin, std::size_t of_all) : of_origin_(of_origin), of_all_(of_all) {}

  bool empty() const { return here_.empty(); }

  // One more; returns who gives way to it, or null.
  Peer* add(Peer& peer, const Origin& origin, Time now) {
    Peer* oldest = nullptr;
    if (count_[origin] >= of_origin_) {
      oldest = std::find_if(here_.begin(), here_.end(), [&](const Stranger& stranger) {
                 return stranger.origin == origin;
               })->peer;
    } else if (here_.size() >= of_all_) {
      oldest = here_.front().peer;
    }
    if (oldest != nullptr) remove(*oldest);
    here_.push_back({&peer, origin, now});
    ++count_[origin];
    return oldest;
  }

  // It has said who it is, or has gone.
  void remove(const Peer& peer) {
    const auto entry = std::find_if(here_.begin(), here_.end(), [&](const Stranger& stranger) {
      return stranger.peer == &peer;
    });
    if (entry == here_.end()) return;
    const auto of_origin = count_.find(entry->origin);
    if (--of_origin->second == 0) count_.erase(of_origin);
    here_.erase(entry);
  }

  // When the oldest has had its time.
  Time expires() const { return here_.empty() ? never : here_.front().since + identify_within; }
  // One that has had its time, which is no stranger any more; null: all have time left.
  Peer* take_expired(Time now) {
    if (expires() > now) return nullptr;
    Peer* const oldest = here_.front().peer;
    remove(*oldest);
    return oldest;
  }

 private:
  struct Stranger {
    Peer* peer;
    Origin origin;
    Time since;
  };

  const std::size_t of_origin_;
  const std::size_t of_all_;
  std::list<Stranger> here_;  // by their arrival
  std::unordered_map<Origin, std::size_t> count_;
};

}  // namespace penstock
