// Streams of bytes, in pieces of any size, into the parser of frames: fast enough for tens of
// millions of cases. `make fuzz` builds it with libFuzzer and ASan; fuzz_node.cpp has the whole
// node.
//
// In a case each piece has a byte for its length. The parser gets memory of exactly the size that
// it asked for, so that ASan sees any byte too many.

#include <algorithm>
#include <memory>

#include "check.hpp"
#include "protocol.hpp"

using penstock::Parser;

namespace {

constexpr std::uint32_t largest_here = 64 << 10;  // of payloads that are given memory

struct Stream {
  // Whether the connection would go on.
  bool feed(const std::uint8_t*& data, std::size_t piece) {
    while (piece > 0) {
      const auto space = parser.space();
      std::size_t taken = std::min(space.size(), piece);
      if (taken > 0) std::copy_n(data, taken, reinterpret_cast<std::uint8_t*>(space.data()));
      if (taken < piece && parser.spare() != nullptr) ++taken;  // as a read into both would
      CHECK(taken > 0);
      data += taken;
      piece -= taken;
      Parser::Step step = parser.arrived(taken);
      if (step == Parser::Step::payload) step = place();
      if (step == Parser::Step::wrong) return false;
      if (step == Parser::Step::frame) answer();
    }
    return true;
  }

  Parser::Step place() {
    const std::uint32_t bytes = parser.request().bytes;
    CHECK(bytes > 0 && bytes <= PENSTOCK_LARGEST);
    if (bytes > largest_here) return Parser::Step::wrong;
    payload = std::make_unique<std::byte[]>(bytes);
    return parser.place(payload.get());
  }

  void answer() {
    const penstock_request& request = parser.request();
    CHECK(request.magic == PENSTOCK_WIRE_MAGIC);
    const bool greets = request.operation == PENSTOCK_HELLO || request.operation == PENSTOCK_PROVE;
    CHECK(greets == !parser.introduced());
    CHECK(request.bytes <= PENSTOCK_LARGEST);
    if (request.operation == PENSTOCK_HELLO) {
      CHECK(parser.follows().size() == sizeof(penstock_introduction));
      parser.challenge();
    } else if (request.operation == PENSTOCK_PROVE) {
      CHECK(parser.follows().size() == PENSTOCK_DIGEST_BYTES);
      parser.introduce();
    } else if (request.operation == PENSTOCK_OPEN) {
      CHECK(parser.follows().size() == request.bytes && request.bytes <= PENSTOCK_PATH_BYTES);
    }
    parser.next();
    payload.reset();
  }

  Parser parser;
  std::unique_ptr<std::byte[]> payload;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* const end = data + size;
  Stream stream;
  while (data < end) {
    const std::size_t wanted = *data++;
    const std::size_t piece = std::min(wanted, static_cast<std::size_t>(end - data));
    if (!stream.feed(data, piece)) break;
  }
  return 0;
}
