// Who gives way among those who have not said who they are.

#include "strangers.hpp"

#include <array>
#include <cstdio>

#include "check.hpp"

using namespace penstock;

namespace {

Origin address(std::size_t number) {
  Origin origin;
  std::memcpy(origin.name.data() + 1, &number, sizeof number);
  return origin;
}

std::array<Peer, 100> peers = [] {
  return []<std::size_t... k>(std::index_sequence<k...>) {
    return std::array<Peer, sizeof...(k)>{((void)k, Peer{Transport::tcp})...};
  }(std::make_index_sequence<100>());
}();

void the_oldest_of_an_origin_gives_way() {
  Strangers strangers(2, 10);
  CHECK(strangers.add(peers[0], address(1), 0) == nullptr);
  CHECK(strangers.add(peers[1], address(2), 1) == nullptr);
  CHECK(strangers.add(peers[2], address(2), 2) == nullptr);
  CHECK(strangers.add(peers[3], address(2), 3) == &peers[1]);
  strangers.remove(peers[2]);
  CHECK(strangers.add(peers[4], address(2), 4) == nullptr);
}

// One connection each of many addresses: together no more than there is room for.
void the_oldest_of_all_gives_way() {
  Strangers strangers(64, 10);
  for (std::size_t k = 0; k < peers.size(); ++k) {
    Peer* const gone = strangers.add(peers[k], address(k), k);
    CHECK(gone == (k < 10 ? nullptr : &peers[k - 10]));
  }
}

void each_has_its_time() {
  Strangers strangers(64, 10);
  CHECK(strangers.expires() == never);
  strangers.add(peers[0], address(0), 5);
  strangers.add(peers[1], address(1), 7);
  CHECK(strangers.expires() == 5 + Strangers::identify_within);
  CHECK(strangers.take_expired(4 + Strangers::identify_within) == nullptr);
  CHECK(strangers.take_expired(6 + Strangers::identify_within) == &peers[0]);
  CHECK(strangers.take_expired(6 + Strangers::identify_within) == nullptr && !strangers.empty());
}

}  // namespace

int main() {
  the_oldest_of_an_origin_gives_way();
  the_oldest_of_all_gives_way();
  each_has_its_time();
  std::puts("strangers: all hold");
}
