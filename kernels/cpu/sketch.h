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
constexpr int VECTORS_OF_KEYS = KEYS / W;

// acc + the products of 4 unsigned and 4 signed bytes in each lane; the unsigned ones are codes below 16.
inline I dot4(I acc, I codes, I query) {
#if defined(__AVX512VNNI__)
  return (I)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)codes, (__m512i)query);
#elif defined(__AVX512BW__)
  __m512i pairs = _mm512_maddubs_epi16((__m512i)codes, (__m512i)query);
  return (I)_mm512_add_epi32((__m512i)acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#elif defined(__AVX2__)
  __m256i pairs = _mm256_maddubs_epi16((__m256i)codes, (__m256i)query);
  return (I)_mm256_add_epi32((__m256i)acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#else
  for (int byte = 0; byte < 4; byte++) {
    I code = (I)(((U)codes >> (8 * byte)) & 0xFF);
    I factor = (I)((U)query << (24 - 8 * byte)) >> 24;
    acc += code * factor;
  }
  return acc;
#endif
}

// A query head as sketches meet it: whole numbers by fours, and what their products count.
struct SketchQuery {
  uint32_t fours[COORDINATES_MAX / 4];
  float unit, offset;

  // q: [dim]; map: [dim, coordinates]; the unit takes in the scale of logits.
  void take(const float* q, const float* map, int dim, const LsSampled& s, float scale) {
    int count = 8 * s.fours + 16 * s.twos + 32 * s.ones;
    float exact[COORDINATES_MAX] = {};
    for (int d = 0; d < dim; d++)
      for (int c = 0; c < count; c++) exact[c] += q[d] * map[(size_t)d * count + c];
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

// Products of HEADS queries with W keys of a group, from its first plane on.
template <int HEADS>
inline void multiply(const uint8_t* plane, const SketchQuery* queries, const LsSampled& s, I* acc) {
  for (int h = 0; h < HEADS; h++) acc[h] = I{};
  int at = 0;
  auto take = [&](int bits, int planes) {
    for (int p = 0; p < planes; p++, plane += PLANE) {
      U bytes;
      std::memcpy(&bytes, plane, sizeof bytes);
      uint32_t mask = ((1u << bits) - 1) * 0x01010101u;
      for (int shift = 0; shift < 8; shift += bits, at++) {
        I codes = (I)((bytes >> shift) & mask);
        for (int h = 0; h < HEADS; h++) acc[h] = dot4(acc[h], codes, (I)(queries[h].fours[at] + U{}));
      }
    }
  };
  take(4, s.fours);
  take(2, s.twos);
  take(1, s.ones);
}

// Guessed logits of a group of keys for one query.
inline void guess(const uint8_t* group, const SketchQuery& query, const LsSampled& s, float* logits) {
  for (int part = 0; part < VECTORS_OF_KEYS; part++) {
    I product;
    multiply<1>(group + part * W * 4, &query, s, &product);
    store(logits + part * W, __builtin_convertvector(product, F) * query.unit + query.offset);
  }
}

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
