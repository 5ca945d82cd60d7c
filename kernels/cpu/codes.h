// Codes of packed weights to numbers: runs of 32 that share scale and offset, into registers, rounded to bf16.
//
// Such a run has at most 32 different values: on AVX-512 those are worked out once, in one or two registers, and each number is a
// look-up by its code. Where there are dot products of bf16 pairs, all 32 numbers stand in one register (`pairs`). Narrower instruction
// sets work out each number: filling tables of bytes and looking numbers up in them takes as many instructions there.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.h"

namespace {

constexpr int RUN = 32;  // numbers unpacked at once
constexpr int VECTORS = RUN / W;

inline float half(const uint8_t* p) {
#if defined(__AVX2__)
  uint16_t h;
  std::memcpy(&h, p, 2);
  return _cvtsh_ss(h);
#else
  uint16_t h;
  std::memcpy(&h, p, 2);
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3FF, bits;
  if (exponent == 0) {
    float value = (float)fraction * 5.9604644775390625e-8f;  // 2^-24
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
#endif
}

// W bytes, one in each lane. GCC converts bytes one by one where it is left to find the instructions.
inline I lanes(const uint8_t* p) {
#if defined(__AVX512F__)
  return (I)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
#elif defined(__AVX2__)
  return (I)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
#else
  I out;
  for (int i = 0; i < W; i++) out[i] = p[i];
  return out;
#endif
}

inline I lanes(const int8_t* p) {
#if defined(__AVX512F__)
  return (I)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p));
#elif defined(__AVX2__)
  return (I)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
#else
  I out;
  for (int i = 0; i < W; i++) out[i] = p[i];
  return out;
#endif
}

inline F floats(I x) { return __builtin_convertvector(x, F); }

// To the nearest bf16, ties to even: x where it is 0 or of a magnitude from 2^-100 to 2^100, as numbers made of float16 scales are.
// x - 2^16 x is rounded at the eighth bit of x, all else is exact. Two instructions less than `rounded`.
inline F rounded_weight(F x) {
  I bits;
  F far;
  std::memcpy(&bits, &x, sizeof bits);
  bits += 16 << 23;
  std::memcpy(&far, &bits, sizeof far);
  return x - far + far;
}

// What turns codes into numbers, in every lane.
struct Line {
  F scale, offset;

  Line(float s, float o) : scale(splat(s)), offset(splat(o)) {}

  // From two float16 that stand side by side.
  explicit Line(const uint8_t* halves) {
#if defined(__AVX512F__)
    __m128 both = _mm_cvtph_ps(_mm_loadu_si32(halves));
    scale = (F)_mm512_broadcastss_ps(both);
    offset = (F)_mm512_broadcastss_ps(_mm_movehdup_ps(both));
#elif defined(__AVX2__)
    float both;
    std::memcpy(&both, halves, 4);
    __m256 pairs = _mm256_cvtph_ps(_mm_castps_si128(_mm_set1_ps(both)));
    scale = (F)_mm256_moveldup_ps(pairs);
    offset = (F)_mm256_movehdup_ps(pairs);
#else
    scale = splat(half(halves));
    offset = splat(half(halves + 2));
#endif
  }

  F of(F codes) const { return fused(codes, scale, offset); }
  F weights(I codes) const { return rounded_weight(of(floats(codes))); }
};

#if defined(__AVX512F__)
inline F ramp() { return F{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
#endif

// 16 bytes: low halves are the first 16 codes, high halves the others.
inline void from_nibbles(const uint8_t* nibbles, Line line, F* out) {
#if defined(__AVX512F__)
  __m512i codes = (__m512i)lanes(nibbles);
  __m512 table = (__m512)rounded_weight(line.of(ramp()));
  out[0] = (F)_mm512_permutexvar_ps(codes, table);
  out[1] = (F)_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table);
#else
  for (int i = 0; i < VECTORS / 2; i++) {
    I both = lanes(nibbles + i * W);
    out[i] = line.weights(both & 15);
    out[VECTORS / 2 + i] = line.weights(both >> 4);
  }
#endif
}

// The same with a fifth bit of each code: bit i of `high` belongs to code i.
inline void from_nibbles(const uint8_t* nibbles, uint32_t high, Line line, F* out) {
#if defined(__AVX512F__)
  __m512i codes = (__m512i)lanes(nibbles);
  __m512i lower = _mm512_and_si512(codes, _mm512_set1_epi32(15)), upper = _mm512_srli_epi32(codes, 4);
  lower = _mm512_mask_or_epi32(lower, (__mmask16)high, lower, _mm512_set1_epi32(16));
  upper = _mm512_mask_or_epi32(upper, (__mmask16)(high >> 16), upper, _mm512_set1_epi32(16));
  __m512 low_table = (__m512)rounded_weight(line.of(ramp()));
  __m512 high_table = (__m512)rounded_weight(line.of(ramp() + 16.0f));
  out[0] = (F)_mm512_permutex2var_ps(low_table, lower, high_table);
  out[1] = (F)_mm512_permutex2var_ps(low_table, upper, high_table);
#else
  U first, bits = high - U{};
  for (int i = 0; i < W; i++) first[i] = i;
  for (int i = 0; i < VECTORS / 2; i++) {
    I both = lanes(nibbles + i * W);
    U lower = (bits >> (first + i * W) & 1) << 4, upper = (bits >> (first + i * W + 16) & 1) << 4;
    out[i] = line.weights((both & 15) | (I)lower);
    out[VECTORS / 2 + i] = line.weights(both >> 4 | (I)upper);
  }
#endif
}

// 32 bytes of which one half each (shift 0 or 4) is a code.
inline void from_halves(const uint8_t* bytes, int shift, Line line, F* out) {
#if defined(__AVX512F__)
  __m512 table = (__m512)rounded_weight(line.of(ramp()));
  for (int i = 0; i < 2; i++)
    out[i] = (F)_mm512_permutexvar_ps(_mm512_srl_epi32((__m512i)lanes(bytes + 16 * i), _mm_cvtsi32_si128(shift)), table);
#else
  for (int i = 0; i < VECTORS; i++) out[i] = line.weights(lanes(bytes + i * W) >> shift & 15);
#endif
}

#if defined(__AVX512BF16__)
// The values of codes 0 to 15, twice: a look-up may leave anything in bit 4 of an index.
inline __m512i table16(Line line) { return _mm512_broadcast_i64x4((__m256i)_mm512_cvtneps_pbh((__m512)line.of(ramp()))); }

// The values of codes 0 to 31.
inline __m512i table32(Line line) {
  return (__m512i)_mm512_cvtne2ps_pbh((__m512)line.of(ramp() + 16.0f), (__m512)line.of(ramp()));
}

// 16 bytes as 32 words: the bytes, whose low halves are codes, then their high halves.
inline __m512i nibble_words(const uint8_t* nibbles) {
  __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)nibbles));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_srli_epi16(low, 4), 1);
}

inline __m512i pairs_of_nibbles(const uint8_t* nibbles, Line line) {
  return _mm512_permutexvar_epi16(nibble_words(nibbles), table16(line));
}

inline __m512i pairs_of_nibbles(const uint8_t* nibbles, uint32_t high, Line line) {
  __m512i codes = _mm512_and_si512(nibble_words(nibbles), _mm512_set1_epi16(15));
  codes = _mm512_mask_add_epi16(codes, high, codes, _mm512_set1_epi16(16));
  return _mm512_permutexvar_epi16(codes, table32(line));
}

// 32 signed bytes times the scale of each 16.
inline __m512i pairs_of_bytes(__m256i bytes, float first, float second) {
  __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes)));
  __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(bytes, 1)));
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(high, _mm512_set1_ps(second)), _mm512_mul_ps(low, _mm512_set1_ps(first)));
}

// Bits [shift, shift + n) of each byte, `mask` being n ones.
inline __m256i bits_of(const uint8_t* bytes, int shift, int mask) {
  __m256i loaded = _mm256_loadu_si256((const __m256i*)bytes);
  return _mm256_and_si256(_mm256_srl_epi16(loaded, _mm_cvtsi32_si128(shift)), _mm256_set1_epi8((char)mask));
}
#endif

// Line of the `sub`-th of eight sub-blocks of a K layout: float16 scale and offset of the block, then six bits each in 12 bytes.
inline Line line_of(const uint8_t* block, int sub) {
  const uint8_t* s = block + 4;
  int scale, offset;
  if (sub < 4) {
    scale = s[sub] & 63;
    offset = s[sub + 4] & 63;
  } else {
    scale = (s[sub + 4] & 15) | (s[sub - 4] >> 6 << 4);
    offset = (s[sub + 4] >> 4) | (s[sub] >> 6 << 4);
  }
  return Line(half(block) * (float)scale, -(half(block + 2) * (float)offset));
}

}  // namespace
