// Layouts of weights: each unpacks 32 numbers of a row into registers, rounded to bf16, as `kernels/packings.py` defines them. Where there
// are dot products of bf16 pairs, `pairs` gives the same 32 in one register.
#pragma once

#include <cstdint>
#include <cstring>

#include "codes.h"

namespace {

// Each layout: BLOCK numbers in BYTES bytes; unpack gives the `sub`-th run of 32 in a block.

struct Bf16 {
  static constexpr int BLOCK = 32, BYTES = 64;
  static void unpack(const uint8_t* b, int, F* out) {
    for (int i = 0; i < VECTORS; i++) out[i] = load((const uint16_t*)b + i * W);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) { return _mm512_loadu_si512(b); }
#endif
};

struct F32 {
  static constexpr int BLOCK = 32, BYTES = 128;
  static void unpack(const uint8_t* b, int, F* out) {
    for (int i = 0; i < VECTORS; i++) out[i] = load((const float*)b + i * W);
  }
};

struct Q8_0 {
  static constexpr int BLOCK = 32, BYTES = 34;
  static void unpack(const uint8_t* b, int, F* out) {
    float d = half(b);
    for (int i = 0; i < VECTORS; i++) out[i] = rounded_weight(floats(lanes((const int8_t*)b + 2 + i * W)) * d);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) {
    float d = half(b);
    return pairs_of_bytes(_mm256_loadu_si256((const __m256i*)(b + 2)), d, d);
  }
#endif
};

struct Q4_0 {
  static constexpr int BLOCK = 32, BYTES = 18;
  static void unpack(const uint8_t* b, int, F* out) {
    float d = half(b);
    from_nibbles(b + 2, Line(d, -8 * d), out);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) {
    float d = half(b);
    return pairs_of_nibbles(b + 2, Line(d, -8 * d));
  }
#endif
};

struct Q4_1 {
  static constexpr int BLOCK = 32, BYTES = 20;
  static void unpack(const uint8_t* b, int, F* out) { from_nibbles(b + 4, Line(b), out); }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) { return pairs_of_nibbles(b + 4, Line(b)); }
#endif
};

struct Q5_0 {
  static constexpr int BLOCK = 32, BYTES = 22;
  static void unpack(const uint8_t* b, int, F* out) {
    uint32_t high;
    std::memcpy(&high, b + 2, 4);
    float d = half(b);
    from_nibbles(b + 6, high, Line(d, -16 * d), out);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) {
    uint32_t high;
    std::memcpy(&high, b + 2, 4);
    float d = half(b);
    return pairs_of_nibbles(b + 6, high, Line(d, -16 * d));
  }
#endif
};

struct Q5_1 {
  static constexpr int BLOCK = 32, BYTES = 24;
  static void unpack(const uint8_t* b, int, F* out) {
    uint32_t high;
    std::memcpy(&high, b + 4, 4);
    from_nibbles(b + 8, high, Line(b), out);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int) {
    uint32_t high;
    std::memcpy(&high, b + 4, 4);
    return pairs_of_nibbles(b + 8, high, Line(b));
  }
#endif
};

struct Q4_K {
  static constexpr int BLOCK = 256, BYTES = 144;
  static void unpack(const uint8_t* b, int sub, F* out) {
    from_halves(b + 16 + sub / 2 * 32, sub % 2 * 4, line_of(b, sub), out);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int sub) {
    __m512i codes = _mm512_cvtepu8_epi16(bits_of(b + 16 + sub / 2 * 32, sub % 2 * 4, 15));
    return _mm512_permutexvar_epi16(codes, table16(line_of(b, sub)));
  }
#endif
};

struct Q5_K {
  static constexpr int BLOCK = 256, BYTES = 176;
  static void unpack(const uint8_t* b, int sub, F* out) {
    const uint8_t *low = b + 48 + sub / 2 * 32, *high = b + 16;
    Line line = line_of(b, sub);
    for (int i = 0; i < VECTORS; i++)
      out[i] = line.weights((lanes(low + i * W) >> sub % 2 * 4 & 15) | (lanes(high + i * W) >> sub & 1) << 4);
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int sub) {
    __m256i low = bits_of(b + 48 + sub / 2 * 32, sub % 2 * 4, 15), high = _mm256_slli_epi16(bits_of(b + 16, sub, 1), 4);
    return _mm512_permutexvar_epi16(_mm512_cvtepu8_epi16(_mm256_or_si256(low, high)), table32(line_of(b, sub)));
  }
#endif
};

struct Q6_K {
  static constexpr int BLOCK = 256, BYTES = 210;
  static void unpack(const uint8_t* b, int sub, F* out) {
    int part = sub / 4, quarter = sub % 4;
    const uint8_t *low = b + part * 64 + quarter % 2 * 32, *high = b + 128 + part * 32;
    const int8_t* scales = (const int8_t*)b + 192 + sub * 2;
    float d = half(b + 208);
    for (int i = 0; i < VECTORS; i++) {
      I codes = (lanes(low + i * W) >> quarter / 2 * 4 & 15) | (lanes(high + i * W) >> 2 * quarter & 3) << 4;
      out[i] = rounded_weight(floats(codes - 32) * (d * (float)scales[i * W / 16]));
    }
  }
#if defined(__AVX512BF16__)
  static __m512i pairs(const uint8_t* b, int sub) {
    int part = sub / 4, quarter = sub % 4;
    __m256i low = bits_of(b + part * 64 + quarter % 2 * 32, quarter / 2 * 4, 15);
    __m256i high = _mm256_slli_epi16(bits_of(b + 128 + part * 32, 2 * quarter, 3), 4);
    const int8_t* scales = (const int8_t*)b + 192 + sub * 2;
    float d = half(b + 208);
    __m256i codes = _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32));
    return pairs_of_bytes(codes, d * (float)scales[0], d * (float)scales[1]);
  }
#endif
};

// Calls `then(Packing())` for the layout with this code. Codes are those of kernels/packings.py.
template <class Then>
void with_packing(int code, Then then) {
  switch (code) {
    case 0: return then(Bf16());
    case 1: return then(F32());
    case 2: return then(Q8_0());
    case 3: return then(Q4_0());
    case 4: return then(Q4_1());
    case 5: return then(Q5_0());
    case 6: return then(Q5_1());
    case 7: return then(Q4_K());
    case 8: return then(Q5_K());
    case 9: return then(Q6_K());
  }
}

}  // namespace
