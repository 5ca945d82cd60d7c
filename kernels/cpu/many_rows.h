// Reading a piece for many rows: it is unpacked to floats once, keys transposed, and rows are taken in register blocks: prefill.
#pragma once

#include <vector>

#include "pieces.h"

namespace {

// A register block of ROWS x VECTORS accumulators: 24 of 32 registers, 12 of 16. A stripe of rows shares one unpacking of a piece.
constexpr int ROWS = W == 4 ? 4 : 6;
constexpr int VECTORS = W == 8 ? 2 : 4;
constexpr int STRIPE = 64 * ROWS;  // at most; fewer where more threads are to have work

// One piece of one KV head as floats, for reading by many rows: keys transposed, so that rows need no sums across lanes.
// What a register block reads stands together: keys in panels of PANEL, values in panels of PANEL dims, the last one narrower.
struct Unpacked {
  static constexpr int PANEL = VECTORS * W;

  int dim, count = 0;
  std::vector<float> keys;    // [PIECE / PANEL, dim, PANEL]
  std::vector<float> values;  // [dim / PANEL, PIECE, PANEL]

  static F exp(F x) { return exp_nonpositive(x); }

  explicit Unpacked(int d) : dim(d), keys((size_t)d * PIECE), values((size_t)d * PIECE) {}

  void take_keys(const Piece& piece, int head) {
    if (piece.block->dtype == 0)
      take_keys<uint16_t>(piece, head);
    else
      take_keys<float>(piece, head);
  }

  void take_values(const Piece& piece, int head) {
    if (piece.block->dtype == 0)
      take_values<uint16_t>(piece, head);
    else
      take_values<float>(piece, head);
  }

  template <typename T>
  void take_keys(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    const T* k = static_cast<const T*>(b.k) + head * b.head_stride + piece.first * b.token_stride;
    count = piece.count;
    for (int base = 0; base < up(count, W); base += W)
      for (int d = 0; d < dim; d += W) {
        F block[W];
        for (int i = 0; i < W; i++) block[i] = load(k + std::min(base + i, count - 1) * b.token_stride + d);
        transpose(block);
        float* to = &keys[(size_t)down(base, PANEL) * dim + d * PANEL + base % PANEL];
        for (int i = 0; i < W; i++) store(to + i * PANEL, block[i]);
      }
  }

  template <typename T>
  void take_values(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    const T* v = static_cast<const T*>(b.v) + head * b.head_stride + piece.first * b.token_stride;
    count = piece.count;
    for (int base = 0; base < dim; base += PANEL)
      for (int key = 0; key < count; key++)
        for (int d = base; d < base + width(base); d += W)
          store(&values[(size_t)base * PIECE + key * width(base) + d - base], load(v + key * b.token_stride + d));
  }

  // Dims of the panel of values from `base` on.
  int width(int base) const { return std::min(PANEL, dim - base); }

  // Logits of the keys of `seen`, a few more being filled with what stands beside them.
  void score(const float* const* q, float scale, Span seen, float (*logits)[PIECE]) const {
    for (int base = down(seen.begin, PANEL); base < seen.end; base += PANEL) {
      const float* panel = &keys[(size_t)base * dim];
      F acc[ROWS][VECTORS] = {};
#pragma GCC unroll 4
      for (int d = 0; d < dim; d++) {
        F k[VECTORS];
        for (int j = 0; j < VECTORS; j++) k[j] = load(panel + d * PANEL + j * W);
        for (int r = 0; r < ROWS; r++) {
          F x = splat(q[r][d]);
          for (int j = 0; j < VECTORS; j++) acc[r][j] += x * k[j];
        }
      }
      for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < VECTORS; j++) store(&logits[r][base + j * W], acc[r][j] * scale);
    }
  }

  // The values of the keys of `seen`, weighed.
  void gather(const float (*weights)[PIECE], Span seen, float (*out)[DIM_MAX]) const {
    for (int base = 0; base < dim; base += PANEL) {
      int wide = width(base);
      const float* panel = &values[(size_t)base * PIECE];
      if (wide == PANEL)
        gather_columns<VECTORS>(panel, wide, base, weights, seen, out);
      else
        for (int d = 0; d < wide; d += W) gather_columns<1>(panel + d, wide, base + d, weights, seen, out);
    }
  }

  // N vectors of the output; numbers of one key stand `wide` apart from the next one's.
  template <int N>
  void gather_columns(const float* panel, int wide, int base, const float (*weights)[PIECE], Span seen, float (*out)[DIM_MAX]) const {
    F acc[ROWS][N] = {};
#pragma GCC unroll 4
    for (int key = seen.begin; key < seen.end; key++) {
      F v[N];
      for (int j = 0; j < N; j++) v[j] = load(panel + (size_t)key * wide + j * W);
      for (int r = 0; r < ROWS; r++) {
        F x = splat(weights[r][key]);
        for (int j = 0; j < N; j++) acc[r][j] += x * v[j];
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) store(&out[r][base + j * W], acc[r][j]);
  }
};

}  // namespace
