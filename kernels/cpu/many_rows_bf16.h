// Reading a piece of bf16 keys and values for many rows with dot products of bf16 pairs: twice the work an instruction, half the memory.
//
// Queries and weights are rounded to bf16, as the matrix products around attention round their inputs; sums stay float32.
#pragma once

#include <vector>

#include "many_rows.h"

#if defined(__AVX512BF16__)

namespace {

inline __m512 dot_pairs(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }

// 16 words each of 16 rows, transposed in place.
inline void transpose(__m512i* r) {
  __m512i t[16];
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// `count` floats as bf16; what is beyond them, up to whole vectors, becomes 0.
inline void to_pairs(const float* from, int count, uint32_t* to) {
  for (int i = 0; i < count; i += 16) {
    __mmask16 part = count - i >= 16 ? 0xFFFF : (__mmask16)((1 << (count - i)) - 1);
    __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(part, from + i));
    _mm256_storeu_si256((__m256i*)(to + i / 2), (__m256i)half);
  }
}

// One piece of one KV head as pairs: of neighbouring dims in keys, transposed, and of neighbouring keys in values.
struct UnpackedBf16 {
  int dim, count = 0;
  std::vector<uint32_t> keys;    // [dim / 2, PIECE]
  std::vector<uint32_t> values;  // [PIECE / 2, dim]

  static F exp(F x) { return exp_nonpositive_near(x); }

  explicit UnpackedBf16(int d) : dim(d), keys((size_t)up(d, 32) / 2 * PIECE), values((size_t)PIECE / 2 * d) {}

  void take_keys(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    const uint16_t* k = static_cast<const uint16_t*>(b.k) + head * b.head_stride + piece.first * b.token_stride;
    count = piece.count;
    for (int base = 0; base < count; base += 16)
      for (int pair = 0; pair < dim / 2; pair += 16) {
        __mmask16 part = dim / 2 - pair >= 16 ? 0xFFFF : (__mmask16)((1 << (dim / 2 - pair)) - 1);
        __m512i words[16];
        for (int i = 0; i < 16; i++)
          words[i] = _mm512_maskz_loadu_epi32(part, k + std::min(base + i, count - 1) * b.token_stride + 2 * pair);
        transpose(words);
        for (int i = 0; i < 16; i++) _mm512_storeu_si512(&keys[(size_t)(pair + i) * PIECE + base], words[i]);
      }
  }

  void take_values(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    const uint16_t* v = static_cast<const uint16_t*>(b.v) + head * b.head_stride + piece.first * b.token_stride;
    count = piece.count;
    for (int key = 0; key < count; key += 2)
      for (int d = 0; d < dim; d += 16) {
        __m512i even = widened(v + key * b.token_stride + d);
        __m512i odd = key + 1 < count ? widened(v + (key + 1) * b.token_stride + d) : _mm512_setzero_si512();
        _mm512_storeu_si512(&values[(size_t)key / 2 * dim + d], _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
      }
  }

  void score(const float* const* q, float scale, Span seen, float (*logits)[PIECE]) const {
    uint32_t pairs[ROWS][DIM_MAX / 2];
    for (int r = 0; r < ROWS; r++) to_pairs(q[r], dim, pairs[r]);
    for (int base = down(seen.begin, VECTORS * W); base < seen.end; base += VECTORS * W) {
      __m512 acc[ROWS][VECTORS] = {};
      for (int pair = 0; pair < dim / 2; pair++) {
        __m512i k[VECTORS];
        for (int j = 0; j < VECTORS; j++) k[j] = _mm512_loadu_si512(&keys[(size_t)pair * PIECE + base + j * W]);
        for (int r = 0; r < ROWS; r++) {
          __m512i x = _mm512_set1_epi32((int)pairs[r][pair]);
          for (int j = 0; j < VECTORS; j++) acc[r][j] = dot_pairs(acc[r][j], k[j], x);
        }
      }
      for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < VECTORS; j++) store(&logits[r][base + j * W], (F)acc[r][j] * scale);
    }
  }

  void gather(const float (*weights)[PIECE], Span seen, float (*out)[DIM_MAX]) const {
    uint32_t pairs[ROWS][PIECE / 2];
    int begin = down(seen.begin, 2);
    for (int r = 0; r < ROWS; r++) {
      const float* from = weights[r];
      float own[PIECE];
      if (begin < seen.begin) {
        own[begin] = 0;
        std::copy(from + seen.begin, from + seen.end, own + seen.begin);
        from = own;
      }
      to_pairs(from + begin, seen.end - begin, pairs[r]);
    }
    for (int base = 0; base < dim; base += VECTORS * W) {
      int vectors = std::min(VECTORS, (dim - base) / W);
      if (vectors == VECTORS)
        gather_columns<VECTORS>(base, pairs, begin, seen.end, out);
      else
        for (int j = 0; j < vectors; j++) gather_columns<1>(base + j * W, pairs, begin, seen.end, out);
    }
  }

 private:
  static __m512i widened(const uint16_t* p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)); }

  template <int N>
  void gather_columns(int base, const uint32_t (*pairs)[PIECE / 2], int begin, int end, float (*out)[DIM_MAX]) const {
    __m512 acc[ROWS][N] = {};
    for (int key = begin; key < end; key += 2) {
      const uint32_t* row = &values[(size_t)key / 2 * dim + base];
      __m512i v[N];
      for (int j = 0; j < N; j++) v[j] = _mm512_loadu_si512(row + j * W);
      for (int r = 0; r < ROWS; r++) {
        __m512i x = _mm512_set1_epi32((int)pairs[r][(key - begin) / 2]);
        for (int j = 0; j < N; j++) acc[r][j] = dot_pairs(acc[r][j], v[j], x);
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) store(&out[r][base + j * W], (F)acc[r][j]);
  }
};

}  // namespace
#endif
