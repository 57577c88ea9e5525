// Streams of bytes, in pieces of any size, into the parser of frames: fast enough for tens of
// millions of cases. `make fuzz` builds it with libFuzzer and ASan; fuzz_node.cpp has the whole
// node.
//
// The first byte of a case chooses transport and window, then each piece has a byte for its length.
// The parser gets memory of exactly the size that it asked for, so that ASan sees any byte too
// many.

#include <algorithm>
#include <memory>

#include "check.hpp"
#include "protocol.hpp"

using penstock::Parser;
using penstock::Transport;

namespace {

constexpr std::uint32_t largest_here = 64 << 10;  // of payloads that are given memory

struct Stream {
  Stream(Transport transport, std::uint32_t window)
      : transport(transport), window(window), parser(transport) {}

  // Whether the connection would go on.
  bool feed(const std::uint8_t*& data, std::size_t piece) {
    while (piece > 0) {
      const auto space = parser.space();
      std::size_t taken = std::min(space.size(), piece);
      if (taken > 0) std::copy_n(data, taken, reinterpret_cast<std::uint8_t*>(space.data()));
      if (taken < piece && parser.spare() != nullptr) ++taken;  // as a read into both would
      CHECK(taken > 0);
      const unsigned descriptors = transport == Transport::local && (*data & 1) != 0 ? 1 : 0;
      data += taken;
      piece -= taken;
      Parser::Step step = parser.arrived(taken, descriptors);
      if (step == Parser::Step::payload) step = place();
      if (step == Parser::Step::wrong) return false;
      if (step == Parser::Step::frame) answer();
    }
    return true;
  }

  Parser::Step place() {
    const std::uint32_t bytes = parser.request().bytes;
    CHECK(transport == Transport::tcp && bytes > 0 && bytes <= PENSTOCK_LARGEST);
    if (bytes > largest_here) return Parser::Step::wrong;
    payload = std::make_unique<std::byte[]>(bytes);
    return parser.place(payload.get());
  }

  void answer() {
    const penstock_request& request = parser.request();
    CHECK(request.magic == PENSTOCK_WIRE_MAGIC);
    CHECK((request.operation == PENSTOCK_HELLO) == !parser.introduced());
    CHECK(request.bytes <= PENSTOCK_LARGEST);
    if (request.operation == PENSTOCK_HELLO) {
      CHECK(parser.follows().size() == sizeof(penstock_introduction));
      parser.introduce(window);
    } else if (transport == Transport::local) {
      CHECK(request.bytes <= window && parser.follows().empty());
    } else if (request.operation == PENSTOCK_OPEN) {
      CHECK(parser.follows().size() == request.bytes && request.bytes <= PENSTOCK_PATH_BYTES);
    }
    parser.next();
    payload.reset();
  }

  const Transport transport;
  const std::uint32_t window;
  Parser parser;
  std::unique_ptr<std::byte[]> payload;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t* const end = data + size;
  const std::uint8_t kind = *data++;
  Stream stream((kind & 1) != 0 ? Transport::tcp : Transport::local, (kind >> 1) * 4096u);
  while (data < end) {
    const std::size_t wanted = *data++;
    const std::size_t piece = std::min(wanted, static_cast<std::size_t>(end - data));
    if (!stream.feed(data, piece)) break;
  }
  return 0;
}
