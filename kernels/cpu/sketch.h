// Guessing logits from sketches, 16 keys at a time; `kernels/sketch.py` says what the bytes mean.
#pragma once

#include <algorithm>
#include <cmath>

#include "sampled.h"
#include "simd.h"

namespace {

constexpr int KEYS = 16;              // that stand together
constexpr int PLANE = 64;             // bytes of a plane: 4 of each key
constexpr int COORDINATES_MAX = 256;
constexpr int HEADS_MAX = 8;  // query heads of a KV head
constexpr int VECTORS_OF_KEYS = KEYS / W;

// ---- products of codes and queries ----
//
// Of each key 4 codes below 16 meet 4 signed bytes. Without an instruction that adds their products to 32 bits, sums are held in 16, two
// for each key, as long as they can't overflow.

#if (defined(__AVX512BW__) && !defined(__AVX512VNNI__)) || (defined(__AVX2__) && !defined(__AVX512F__))
constexpr bool NARROW = true;
#else
constexpr bool NARROW = false;
#endif

// Planes of so many bits whose products may be added up before the sums are widened: 15 * 127 * 2 for each word of 4 bits, of 32767.
template <int BITS>
constexpr int PLANES_AT_ONCE = NARROW ? 32767 / (((1 << BITS) - 1) * 127 * 2) / (8 / BITS) : COORDINATES_MAX;

// GCC adds products to one another first, and has no registers left for them.
inline I in_order(I sum) {
#if defined(__x86_64__)
  __asm__("" : "+v"(sum));
#endif
  return sum;
}

inline I add_products(I acc, I codes, I query) {
#if defined(__AVX512VNNI__)
  return (I)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)codes, (__m512i)query);
#elif defined(__AVX512BW__)
  return in_order((I)_mm512_add_epi16((__m512i)acc, _mm512_maddubs_epi16((__m512i)codes, (__m512i)query)));
#elif defined(__AVX2__)
  return in_order((I)_mm256_add_epi16((__m256i)acc, _mm256_maddubs_epi16((__m256i)codes, (__m256i)query)));
#else
  for (int byte = 0; byte < 4; byte++) {
    I code = (I)(((U)codes >> (8 * byte)) & 0xFF);
    I factor = (I)((U)query << (24 - 8 * byte)) >> 24;
    acc += code * factor;
  }
  return acc;
#endif
}

// Sums of products as one number of 32 bits for each key.
inline I widened(I acc) {
#if defined(__AVX512BW__) && !defined(__AVX512VNNI__)
  return (I)_mm512_madd_epi16((__m512i)acc, _mm512_set1_epi16(1));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  return (I)_mm256_madd_epi16((__m256i)acc, _mm256_set1_epi16(1));
#else
  return acc;
#endif
}

inline int coordinates(const LsSampled& s) { return 8 * s.fours + 16 * s.twos + 32 * s.ones; }

// A query head as sketches meet it: whole numbers by fours, and what their products count.
struct SketchQuery {
  uint32_t fours[COORDINATES_MAX / 4];
  float unit, offset;

  // exact: the coordinates; the unit takes in the scale of logits.
  void take(const float* exact, const LsSampled& s, float scale) {
    int count = coordinates(s);
    float largest = 1e-30f;
    for (int c = 0; c < count; c++) largest = std::max(largest, std::fabs(exact[c]));
    unit = largest / 127;
    float middle = 0;
    for (int c = 0; c < count; c++) {
      int whole = (int)std::lrint(exact[c] / unit);
      middle += whole * (c < 8 * s.fours ? 7.5f : c < 8 * s.fours + 16 * s.twos ? 1.5f : 0.5f);
      if (c % 4 == 0) fours[c / 4] = 0;
      fours[c / 4] |= (uint32_t)(uint8_t)(int8_t)whole << (8 * (c % 4));
    }
    unit *= scale;
    offset = -middle * unit;
  }
};

// The query heads of one KV head. q: [group, dim]; map: [dim, coordinates].
inline void take_queries(const float* q, int group, const float* map, const LsSampled& s, SketchQuery* queries) {
  int count = coordinates(s), dim = s.dense.dim;
  float exact[HEADS_MAX][COORDINATES_MAX];
  for (int h = 0; h < group; h++) std::fill_n(exact[h], count, 0.0f);
  for (int d = 0; d < dim; d++)
    for (int h = 0; h < group; h++)
      for (int c = 0; c < count; c++) exact[h][c] += q[h * dim + d] * map[(size_t)d * count + c];
  for (int h = 0; h < group; h++) queries[h].take(exact[h], s, s.dense.scale);
}

// What the codes of BITS bits in some planes add to the products of HEADS queries with the keys of a group; at: words of the queries
// that were met before.
template <int HEADS, int BITS>
inline void multiply_planes(const uint8_t* plane, int planes, int at, const SketchQuery* queries, I (*products)[VECTORS_OF_KEYS]) {
  constexpr uint32_t MASK = ((1u << BITS) - 1) * 0x01010101u;
  for (int first = 0; first < planes; first += PLANES_AT_ONCE<BITS>) {
    I sums[HEADS][VECTORS_OF_KEYS] = {};
    for (int p = first; p < std::min(planes, first + PLANES_AT_ONCE<BITS>); p++)
      for (int shift = 0; shift < 8; shift += BITS, at++) {
        I codes[VECTORS_OF_KEYS];
        for (int part = 0; part < VECTORS_OF_KEYS; part++) {
          U bytes;
          std::memcpy(&bytes, plane + p * PLANE + part * W * 4, sizeof bytes);
          codes[part] = (I)((bytes >> shift) & MASK);
        }
        for (int h = 0; h < HEADS; h++) {
          I query = (I)(queries[h].fours[at] + U{});
          for (int part = 0; part < VECTORS_OF_KEYS; part++) sums[h][part] = add_products(sums[h][part], codes[part], query);
        }
      }
    for (int h = 0; h < HEADS; h++)
      for (int part = 0; part < VECTORS_OF_KEYS; part++) products[h][part] += widened(sums[h][part]);
  }
}

// Products of HEADS queries with the keys of a group, of so many at once as registers hold sums for.
template <int HEADS>
inline void multiply(const uint8_t* group, const SketchQuery* queries, const LsSampled& s, I (*products)[VECTORS_OF_KEYS]) {
  constexpr int MOST = W == 16 ? 8 : 4, NOW = HEADS < MOST ? HEADS : MOST;
  for (int h = 0; h < NOW; h++)
    for (int part = 0; part < VECTORS_OF_KEYS; part++) products[h][part] = I{};
  multiply_planes<NOW, 4>(group, s.fours, 0, queries, products);
  multiply_planes<NOW, 2>(group + s.fours * PLANE, s.twos, 2 * s.fours, queries, products);
  multiply_planes<NOW, 1>(group + (s.fours + s.twos) * PLANE, s.ones, 2 * s.fours + 4 * s.twos, queries, products);
  if constexpr (HEADS > NOW) multiply<HEADS - NOW>(group, queries + NOW, s, products + NOW);
}

// What products say of logits.
inline F logits(I products, const SketchQuery& query) { return __builtin_convertvector(products, F) * query.unit + query.offset; }

// ---- draws ----

// A hash of 32 bits (Wellons' lowbias32).
inline uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

// How far below the threshold a key may be and still be drawn: one number for each of 16 keys at these positions, from the state
// of (seed, row, KV head). It is more than x with probability p(x) = 2^-n (1 + f), n - f = x / ln 2, f in [0, 1): e^-x with straight
// lines between powers of two, whose inverse is the bit pattern of a uniform number.
inline void draw(uint32_t state, uint32_t position, F* margins) {
  U lanes;
  for (int lane = 0; lane < W; lane++) lanes[lane] = lane;
  for (int part = 0; part < VECTORS_OF_KEYS; part++) {
    U x = (lanes + (position + part * W)) * 0x9E3779B9u + state;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    x = x ^ (x >> 16);
    F u = __builtin_convertvector((I)(x >> 8), F) * 0x1p-24f + 0x1p-25f;
    I bits;
    std::memcpy(&bits, &u, sizeof bits);
    margins[part] = __builtin_convertvector(0x3F800000 - bits, F) * (0.69314718f * 0x1p-23f);
  }
}

// -ln p(x): what a key drawn from x below the threshold gets on top of its logit; none where x <= 0, -inf where x is inf.
inline F on_top(F x) {
  F steps = x * 1.44269504f;
  steps = steps > F{} ? steps : F{};
  I n = __builtin_convertvector(steps < splat(200.0f) ? steps : F{}, I);
  F whole = __builtin_convertvector(n, F);
  whole = whole < steps ? whole + 1.0f : whole;
  F result = whole * 0.69314718f - log_of((1.0f + whole - steps) * 0.5f) - 0.69314718f;
  return steps < splat(200.0f) ? result : splat(-INFINITY);
}

}  // namespace
