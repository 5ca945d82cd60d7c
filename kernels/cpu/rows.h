// Products of 1 to 16 rows with rows of a matrix, each weight read and unpacked once for up to eight of them.
//
// A product is one chain of fused multiply-adds over the columns in each lane, then one tree over the lanes: the same for a row of
// x whatever rows stand beside it, for every number of threads, and for every layout that holds the same numbers.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "packings.h"
#include "weights.h"

namespace {

constexpr int AT_ONCE = 8;   // rows of x that share one unpacking
constexpr int AHEAD = 4096;  // bytes of W from what is read to what is fetched meanwhile

// Rows of W that are multiplied by n rows of x at a time: with 32 registers up to 16 sums stay in them, with 16 registers fewer do, beside
// what unpacking takes.
constexpr int together(int n) { return W == 16 ? (n <= 4 ? 4 : 2) : n <= 2 ? 2 : 1; }

inline int padded(int columns) { return (columns + RUN - 1) / RUN * RUN; }

// Rows that are multiplied: [n, padded(columns)], zeros beyond the last column. Where there are dot products of bf16 pairs, bf16 numbers of
// W meet `halves`, the rows rounded to bf16, as in bulk; float32 numbers of W meet `numbers`.
struct Input {
  const float* numbers;
  const uint16_t* halves;
  int64_t stride;
};

template <class Packing, int OUT, int N>
struct Sums {
  F acc[OUT][N];

  Sums() {
    for (int o = 0; o < OUT; o++)
      for (int r = 0; r < N; r++) acc[o][r] = F{};
  }

  // 32 numbers of the o-th row of W against the columns from `at` on.
  void add(int o, const uint8_t* block, int sub, const Input& x, int at) {
#if defined(__AVX512BF16__)
    if constexpr (!std::is_same_v<Packing, F32>) {
      __m512i w = Packing::pairs(block, sub);
      for (int r = 0; r < N; r++)
        acc[o][r] = (F)_mm512_dpbf16_ps((__m512)acc[o][r], (__m512bh)w, (__m512bh)_mm512_loadu_si512(x.halves + r * x.stride + at));
      return;
    }
#endif
    F w[VECTORS];
    Packing::unpack(block, sub, w);
    for (int i = 0; i < VECTORS; i++)
      for (int r = 0; r < N; r++) acc[o][r] = fused(w[i], load(x.numbers + r * x.stride + at + i * W), acc[o][r]);
  }

  void totals(float (*sums)[AT_ONCE]) const {
    constexpr int COUNT = OUT * N;
    F none = {};
    auto at = [&](int i) { return i < COUNT ? acc[i / N][i % N] : none; };
    for (int i = 0; i < COUNT; i += 4) {
      float four[4];
      sum4(at(i), at(i + 1), at(i + 2), at(i + 3), four);
      for (int j = i; j < std::min(i + 4, COUNT); j++) sums[j / N][j % N] = four[j - i];
    }
  }
};

// OUT rows of W against N rows of x; sums[o][r].
template <class Packing, int OUT, int N>
inline void products(const uint8_t* const* w, const Input& x, int columns, float (*sums)[AT_ONCE]) {
  Sums<Packing, OUT, N> total;
  int whole = columns / Packing::BLOCK, at = 0;
  for (int b = 0; b < whole; b++) {
    int64_t offset = (int64_t)b * Packing::BYTES;
    for (int o = 0; o < OUT; o++)
      for (int line = 0; line < Packing::BYTES; line += 64) __builtin_prefetch(w[o] + offset + AHEAD + line);
    for (int sub = 0; sub < Packing::BLOCK / RUN; sub++, at += RUN)
      for (int o = 0; o < OUT; o++) total.add(o, w[o] + offset, sub, x, at);
  }
  if (int rest = columns % Packing::BLOCK) {  // plain layouts only
    uint8_t last[Packing::BYTES];
    for (int o = 0; o < OUT; o++) {
      int bytes = Packing::BYTES / Packing::BLOCK * rest;
      std::memcpy(last, w[o] + (int64_t)whole * Packing::BYTES, bytes);
      std::memset(last + bytes, 0, sizeof last - bytes);
      total.add(o, last, 0, x, at);
    }
  }
  total.totals(sums);
}

// Rows [lo, hi) of a band against n <= N rows of x, into out[r * out_stride + row].
template <class Packing, int N>
void band_rows(const LsBand& band, int lo, int hi, const Input& x, int columns, int n, float* out, int64_t out_stride) {
  constexpr int OUT = together(N);
  for (int row = lo; row < hi; row += OUT) {
    const uint8_t* w[OUT];
    for (int o = 0; o < OUT; o++) w[o] = band.data + (int64_t)std::min(row + o, hi - 1) * band.row_bytes;
    float sums[OUT][AT_ONCE];
    products<Packing, OUT, N>(w, x, columns, sums);
    for (int o = 0; o < OUT && row + o < hi; o++)
      for (int r = 0; r < n; r++) out[r * out_stride + row + o] = sums[o][r];
  }
}

// Rows [lo, hi) of the matrix against x, out[r * out_stride + row] = W x + bias.
void matrix_rows(const LsMatrix& m, int lo, int hi, const Input& x, int n, float* out, int64_t out_stride) {
  for (int first = 0; first < n; first += AT_ONCE) {
    int count = std::min(AT_ONCE, n - first), top = 0;
    Input from = {x.numbers + first * x.stride, x.halves + first * x.stride, x.stride};
    float* to = out + first * out_stride;
    for (int b = 0; b < m.band_count; top += m.bands[b++].rows) {
      const LsBand& band = m.bands[b];
      int begin = std::max(lo - top, 0), end = std::min(hi - top, band.rows);
      if (begin >= end) continue;
      with_packing(band.packing, [&](auto packing) {
        typedef decltype(packing) P;
        if (count == 1) band_rows<P, 1>(band, begin, end, from, m.columns, count, to + top, out_stride);
        else if (count == 2) band_rows<P, 2>(band, begin, end, from, m.columns, count, to + top, out_stride);
        else if (count <= 4) band_rows<P, 4>(band, begin, end, from, m.columns, count, to + top, out_stride);
        else if (count <= 6) band_rows<P, 6>(band, begin, end, from, m.columns, count, to + top, out_stride);
        else band_rows<P, 8>(band, begin, end, from, m.columns, count, to + top, out_stride);
      });
    }
    if (m.bias)
      for (int r = 0; r < count; r++)
        for (int row = lo; row < hi; row++) to[r * out_stride + row] += m.bias[row];
  }
}

// The rows of a matrix that fall to one thread: whole groups of 32, so that no two threads write into one cache line.
struct Share {
  int lo, hi;
  Share(int rows, int thread, int threads) {
    int groups = (rows + 31) / 32;
    lo = std::min(rows, (int)((int64_t)groups * thread / threads) * 32);
    hi = std::min(rows, (int)((int64_t)groups * (thread + 1) / threads) * 32);
  }
};

}  // namespace
