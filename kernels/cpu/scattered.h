// Keys and values that lie scattered: their products with a few query heads and their weighed sums, each row read once for all of them.
//
// A place says where they lie: `count`, and key(i) and value(i) for i from 0 on, those from `count` on being the last one's.
#pragma once

#include "few_rows.h"

namespace {

constexpr int AHEAD = 16;  // keys that are asked for before they are read

// Some keys of one block.
template <typename T>
struct InBlock {
  const T *k, *v;
  int64_t stride;
  const int32_t* keys;
  int count;

  const T* key(int i) const { return k + keys[std::min(i, count - 1)] * stride; }
  const T* value(int i) const { return v + keys[std::min(i, count - 1)] * stride; }
};

// out[r][i] = q[r] · key i; a few behind the last are written too. q: arranged.
template <typename T, int ROWS, int LENGTH, class Place>
void multiply_scattered(const Place& place, const float (*q)[DIM_MAX], int dim, float (*out)[LENGTH]) {
  // More at a time than where keys stand together: each has to be waited for.
  constexpr int N = REGISTERS == 32 || ROWS < 4 ? 4 : 2, SUMS = ROWS * N;
  for (int key = 0; key < place.count; key += N) {
    const T* rows[N];
    for (int j = 0; j < N; j++) {
      rows[j] = place.key(key + j);
      ask_for(place.key(key + j + AHEAD), dim);
      ask_for(place.value(key + j), dim);
    }
    F acc[SUMS] = {};
    int d = 0;
    for (; d + 2 * W <= dim; d += 2 * W)
      for (int j = 0; j < N; j++) {
        Two x = load_two(rows[j] + d);
        for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d), x.first, acc[r * N + j]);
        for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d + W), x.second, acc[r * N + j]);
      }
    for (; W == 16 && d < dim; d += W)
      for (int j = 0; j < N; j++) {
        F x = load(rows[j] + d);
        for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d), x, acc[r * N + j]);
      }
    alignas(64) float sums[SUMS];
    for (int i = 0; i < SUMS; i += 4) sum4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3], sums + i);
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) out[r][key + j] = sums[r * N + j];
  }
}

// Adds the weighed values of keys [begin, end) to N pairs of vectors of each row's sum, from column `base` on.
template <typename T, int ROWS, int N, int LENGTH, class Place>
inline void add_columns(const Place& place, int begin, int end, int base, const float (*weights)[LENGTH], float (*sums)[DIM_MAX]) {
  Two acc[ROWS][N];
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) acc[r][j] = {load(sums[r] + base + j * 2 * W), load(sums[r] + base + j * 2 * W + W)};
  for (int key = begin; key < end; key++) {
    const T* row = place.value(key) + base;
    for (int j = 0; j < N; j++) {
      Two x = load_two(row + j * 2 * W);
      for (int r = 0; r < ROWS; r++) {
        F weight = splat(weights[r][key]);
        acc[r][j].first = fused(weight, x.first, acc[r][j].first);
        acc[r][j].second = fused(weight, x.second, acc[r][j].second);
      }
    }
  }
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) {
      store(sums[r] + base + j * 2 * W, acc[r][j].first);
      store(sums[r] + base + j * 2 * W + W, acc[r][j].second);
    }
}

// values[r] = the sum of weights[r][i] · value i.
template <typename T, int ROWS, int LENGTH, class Place>
void mix_scattered(const Place& place, const float (*weights)[LENGTH], int dim, float* const* values) {
  constexpr int N = PAIRS_OF<ROWS>, TOGETHER = 16;  // keys whose values are added up column by column: they stay in L1
  alignas(64) float sums[ROWS][DIM_MAX];
  for (int r = 0; r < ROWS; r++) std::fill_n(sums[r], dim, 0.0f);
  for (int begin = 0; begin < place.count; begin += TOGETHER) {
    int end = std::min(begin + TOGETHER, place.count), base = 0;
    for (; base + N * 2 * W <= dim; base += N * 2 * W) add_columns<T, ROWS, N>(place, begin, end, base, weights, sums);
    for (; base + 2 * W <= dim; base += 2 * W) add_columns<T, ROWS, 1>(place, begin, end, base, weights, sums);
    for (; W == 16 && base < dim; base += W)
      for (int r = 0; r < ROWS; r++) {
        F acc = load(sums[r] + base);
        for (int key = begin; key < end; key++) acc = fused(splat(weights[r][key]), load(place.value(key) + base), acc);
        store(sums[r] + base, acc);
      }
  }
  for (int r = 0; r < ROWS; r++) restore<T>(sums[r], dim, values[r]);
}

// As `weigh`, where logits may be -inf, all of them too.
inline Partial weigh_some(float* logits, int n) {
  for (int i = 0; i < n; i++)
    if (logits[i] != NOTHING) return weigh(logits, {0, n}, {0, n});
  std::fill_n(logits, n, 0.0f);
  return Partial();
}

// Query heads [h, h + ROWS), the first of them at q, before scattered keys. on_top(h, products): what a head's logits get on top, -inf
// where it doesn't use a key; at least `count` numbers, and what follows them up to a whole vector. told(h, weights): gets a head's weights
// as shares of the largest.
template <typename T, int ROWS, int LENGTH, class Place, class OnTop, class Told>
void read_scattered(const LsAttend& a, const Place& place, const float* q, int h, OnTop& on_top, Told& told, Partial* partials,
                    float* const* values) {
  alignas(64) float arranged[ROWS][DIM_MAX], logits[ROWS][LENGTH];
  for (int r = 0; r < ROWS; r++) arrange<T>(q + r * a.dim, a.dim, arranged[r]);
  multiply_scattered<T, ROWS>(place, arranged, a.dim, logits);
  for (int r = 0; r < ROWS; r++) {
    const float* added = on_top(h + r, logits[r]);
    for (int i = 0; i < place.count; i += W) store(logits[r] + i, load(logits[r] + i) * a.scale);
    if (a.softcap != 0) cap(logits[r], {0, place.count}, a.softcap);
    for (int i = 0; i < place.count; i += W) store(logits[r] + i, load(logits[r] + i) + load(added + i));
    partials[r] = weigh_some(logits[r], place.count);
    told(h + r, logits[r]);
  }
  mix_scattered<T, ROWS>(place, logits, a.dim, values);
}

// The same for all query heads of a KV head. LENGTH: at least the most keys that a place has, and a vector.
template <typename T, int LENGTH, class Place, class OnTop, class Told>
void read_scattered(const LsAttend& a, const Place& place, const float* q, int group, OnTop& on_top, Told& told, Partial* partials,
                    float* const* values) {
  for (int h = 0; h < group; h += TILE) {
    const float* from = q + h * a.dim;
    switch (std::min(TILE, group - h)) {
      case 1: read_scattered<T, 1, LENGTH>(a, place, from, h, on_top, told, partials + h, values + h); break;
      case 2: read_scattered<T, 2, LENGTH>(a, place, from, h, on_top, told, partials + h, values + h); break;
      case 3: read_scattered<T, 3, LENGTH>(a, place, from, h, on_top, told, partials + h, values + h); break;
      default: read_scattered<T, 4, LENGTH>(a, place, from, h, on_top, told, partials + h, values + h);
    }
  }
}

}  // namespace
