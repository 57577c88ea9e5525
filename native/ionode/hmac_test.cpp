// SHA-256 and HMAC-SHA256 give what FIPS 180-4 (its example values) and RFC 4231 say.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "check.hpp"
#include "hmac.h"

namespace {

std::string hexadecimal(const std::uint8_t (&digest)[PENSTOCK_DIGEST_BYTES]) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view data, std::size_t piece) {
  penstock_sha256 hash;
  penstock_sha256_begin(&hash);
  for (std::size_t at = 0; at < data.size(); at += piece)
    penstock_sha256_add(&hash, data.data() + at, std::min(piece, data.size() - at));
  std::uint8_t digest[PENSTOCK_DIGEST_BYTES];
  penstock_sha256_end(&hash, digest);
  return hexadecimal(digest);
}

std::string hmac(std::string_view key, std::string_view data) {
  std::uint8_t digest[PENSTOCK_DIGEST_BYTES];
  penstock_hmac(key.data(), key.size(), data.data(), data.size(), digest);
  return hexadecimal(digest);
}

// In pieces of any size.
void fips_180() {
  for (const std::size_t piece : {1, 3, 55, 64, 65, 1'000'000}) {
    CHECK(sha256("", piece) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc", piece) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", piece) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(1'000'000, 'a'), piece) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

void rfc_4231() {
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) counted += byte;
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmac(counted, std::string(50, '\xcd')) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hmac(std::string(131, '\xaa'),
             "This is a test using a larger than block-size key and a larger than block-size data. "
             "The key needs to be hashed before being used by the HMAC algorithm.") ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

void digests_differ_in_any_bit() {
  std::uint8_t one[PENSTOCK_DIGEST_BYTES] = {};
  std::uint8_t other[PENSTOCK_DIGEST_BYTES] = {};
  CHECK(penstock_same_digest(one, other));
  for (unsigned bit = 0; bit < 8 * PENSTOCK_DIGEST_BYTES; ++bit) {
    other[bit / 8] = static_cast<std::uint8_t>(1u << bit % 8);
    CHECK(!penstock_same_digest(one, other));
    other[bit / 8] = 0;
  }
}

}  // namespace

int main() {
  fips_180();
  rfc_4231();
  digests_differ_in_any_bit();
  std::puts("hmac: all hold");
}
