// What is done to each number of a row between products: RMSNorm, activations, rotation, storing; shared by few rows and many.
//
// A vector that is not full is filled up with zeros: a number's result never depends on where in a row it stands.
#pragma once

#include <cmath>
#include <cstring>

#include "simd.h"

namespace {

inline F load_part(const float* p, int count) {
  float lanes[W] = {};
  std::memcpy(lanes, p, count * sizeof(float));
  return load(lanes);
}

inline void store_part(float* p, F v, int count) {
  float lanes[W];
  store(lanes, v);
  std::memcpy(p, lanes, count * sizeof(float));
}

// f(vector index range) over `count` floats, the last vector filled up with zeros.
template <class Body>
inline void each(int count, Body body) {
  int i = 0;
  for (; i + W <= count; i += W) body(i, W);
  if (i < count) body(i, count - i);
}

inline F get(const float* p, int count) { return count == W ? load(p) : load_part(p, count); }
inline void put(float* p, F v, int count) { count == W ? store(p, v) : store_part(p, v, count); }

inline F get(const uint16_t* p, int count) {
  if (count == W) return load(p);
  uint16_t lanes[W] = {};
  std::memcpy(lanes, p, count * sizeof(uint16_t));
  return load(lanes);
}

inline void put(uint16_t* p, F v, int count) {
  U bits;
  F nearest = rounded(v);
  std::memcpy(&bits, &nearest, sizeof bits);
  H upper = __builtin_convertvector(bits >> 16, H);
  std::memcpy(p, &upper, count * sizeof(uint16_t));
}

template <class T>
inline float inverse_rms(const T* x, int count, float eps) {
  F squares = {};
  each(count, [&](int i, int part) {
    F v = get(x + i, part);
    squares = fused(v, v, squares);
  });
  return 1.0f / std::sqrt(sum(squares) / (float)count + eps);
}

template <class In, class Out>
inline void normalised(const In* x, const float* weight, int count, float eps, Out* out) {
  float scale = inverse_rms(x, count, eps);
  each(count, [&](int i, int part) { put(out + i, get(x + i, part) * scale * get(weight + i, part), part); });
}

inline F negative_magnitude(F x) {
  F zero = {};
  I positive = x > zero;
  return positive ? -x : x;
}

inline F sigmoid(F x) {
  F zero = {}, e = exp_nonpositive(negative_magnitude(x));
  I positive = x > zero;
  return (positive ? splat(1.0f) : e) / (e + 1.0f);
}

// x / (1 + e^-x), or GELU by tanh, which is x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 x^3)).
inline F activated(F x, int kind) {
  return kind == 0 ? x * sigmoid(x) : x * sigmoid((x + x * x * x * 0.044715f) * 1.5957691216f);
}

inline void rotate(float* head, const float* cos, const float* sin, int rotary) {
  int half = rotary / 2;
  for (int i = 0; i < half; i++) {
    float a = head[i], b = head[i + half];
    head[i] = a * cos[i] + b * sin[i];
    head[i + half] = b * cos[i + half] + a * sin[i + half];
  }
}

// Head h of row r of q|k|v is normalised and turned, and goes where the call wants it; k and v are stored as T. Call: LsBefore, LsHeads.
template <class T, class Call>
inline void place_head(const Call& a, int r, int h, float* head) {
  bool query = h < a.heads, key = !query && h < a.heads + a.kv_heads;
  const float* norm = query ? a.q_norm : key ? a.k_norm : nullptr;
  if (norm) normalised(head, norm, a.dim, a.eps, head);
  if (a.cos && (query || key)) rotate(head, a.cos + (int64_t)r * a.rotary, a.sin + (int64_t)r * a.rotary, a.rotary);
  if (query) {
    std::memcpy(a.q + ((int64_t)r * a.heads + h) * a.dim, head, a.dim * sizeof(float));
  } else {
    T* to = (T*)(key ? a.k : a.v) + ((int64_t)r * a.kv_heads + h - a.heads - (key ? 0 : a.kv_heads)) * a.dim;
    each(a.dim, [&](int i, int part) { put(to + i, get(head + i, part), part); });
  }
}

}  // namespace
