// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), for proofs between clients and I/O nodes. C, and
// nothing but the C library's memory functions, so that the client library can use it.

#ifndef PENSTOCK_HMAC_H
#define PENSTOCK_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PENSTOCK_DIGEST_BYTES 32u
#define PENSTOCK_BLOCK_BYTES 64u

typedef struct {
  uint32_t state[8];
  uint64_t bytes;  // so far
  uint8_t block[PENSTOCK_BLOCK_BYTES];
} penstock_sha256;

static inline uint32_t penstock_rotated(uint32_t word, unsigned by) {
  return word >> by | word << (32 - by);
}

static inline void penstock_sha256_block(penstock_sha256* hash) {
  static const uint32_t constants[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  uint32_t words[64];
  for (int k = 0; k < 16; ++k) {
    const uint8_t* at = hash->block + 4 * k;
    words[k] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
  }
  for (int k = 16; k < 64; ++k) {
    const uint32_t early = words[k - 15], late = words[k - 2];
    words[k] = words[k - 16] + words[k - 7] +
               (penstock_rotated(early, 7) ^ penstock_rotated(early, 18) ^ early >> 3) +
               (penstock_rotated(late, 17) ^ penstock_rotated(late, 19) ^ late >> 10);
  }
  uint32_t s[8];
  memcpy(s, hash->state, sizeof s);
  for (int k = 0; k < 64; ++k) {
    const uint32_t first =
        s[7] + constants[k] + words[k] + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
        (penstock_rotated(s[4], 6) ^ penstock_rotated(s[4], 11) ^ penstock_rotated(s[4], 25));
    const uint32_t second =
        ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2])) +
        (penstock_rotated(s[0], 2) ^ penstock_rotated(s[0], 13) ^ penstock_rotated(s[0], 22));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + second;
  }
  for (int k = 0; k < 8; ++k) hash->state[k] += s[k];
}

static inline void penstock_sha256_begin(penstock_sha256* hash) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, initial, sizeof initial);
  hash->bytes = 0;
}

static inline void penstock_sha256_add(penstock_sha256* hash, const void* data, size_t bytes) {
  const uint8_t* from = (const uint8_t*)data;
  while (bytes > 0) {
    const size_t had = hash->bytes % PENSTOCK_BLOCK_BYTES;
    const size_t room = PENSTOCK_BLOCK_BYTES - had;
    const size_t taken = bytes < room ? bytes : room;
    memcpy(hash->block + had, from, taken);
    hash->bytes += taken;
    from += taken;
    bytes -= taken;
    if (taken == room) penstock_sha256_block(hash);
  }
}

static inline void penstock_sha256_end(penstock_sha256* hash,
                                       uint8_t digest[PENSTOCK_DIGEST_BYTES]) {
  const uint64_t bits = hash->bytes * 8;
  const uint8_t one = 0x80, zero = 0;
  penstock_sha256_add(hash, &one, 1);
  while (hash->bytes % PENSTOCK_BLOCK_BYTES != PENSTOCK_BLOCK_BYTES - 8)
    penstock_sha256_add(hash, &zero, 1);
  uint8_t length[8];
  for (int k = 0; k < 8; ++k) length[k] = (uint8_t)(bits >> (56 - 8 * k));
  penstock_sha256_add(hash, length, sizeof length);
  for (int k = 0; k < 32; ++k) digest[k] = (uint8_t)(hash->state[k / 4] >> (24 - 8 * (k % 4)));
}

static inline void penstock_hmac(const void* key, size_t key_bytes, const void* data, size_t bytes,
                                 uint8_t digest[PENSTOCK_DIGEST_BYTES]) {
  penstock_sha256 hash;
  uint8_t pad[PENSTOCK_BLOCK_BYTES] = {0};
  if (key_bytes > sizeof pad) {
    penstock_sha256_begin(&hash);
    penstock_sha256_add(&hash, key, key_bytes);
    penstock_sha256_end(&hash, pad);
  } else {
    memcpy(pad, key, key_bytes);
  }
  for (size_t k = 0; k < sizeof pad; ++k) pad[k] ^= 0x36;
  penstock_sha256_begin(&hash);
  penstock_sha256_add(&hash, pad, sizeof pad);
  penstock_sha256_add(&hash, data, bytes);
  penstock_sha256_end(&hash, digest);
  for (size_t k = 0; k < sizeof pad; ++k) pad[k] ^= 0x36 ^ 0x5c;
  penstock_sha256_begin(&hash);
  penstock_sha256_add(&hash, pad, sizeof pad);
  penstock_sha256_add(&hash, digest, PENSTOCK_DIGEST_BYTES);
  penstock_sha256_end(&hash, digest);
}

// In constant time.
static inline bool penstock_same_digest(const uint8_t a[PENSTOCK_DIGEST_BYTES],
                                        const uint8_t b[PENSTOCK_DIGEST_BYTES]) {
  unsigned differs = 0;
  for (size_t k = 0; k < PENSTOCK_DIGEST_BYTES; ++k) differs |= a[k] ^ b[k];
  return differs == 0;
}

#endif
