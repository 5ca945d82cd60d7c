// Reading a piece for many rows: it is unpacked to floats once, keys transposed, and rows are taken in register blocks: prefill.
#pragma once

#include <vector>

#include "pieces.h"

namespace {

// A register block of ROWS x VECTORS accumulators; a stripe of rows shares one unpacking of a piece.
constexpr int ROWS = W == 16 ? 6 : W == 8 ? 2 : 4;
constexpr int VECTORS = 4;
constexpr int STRIPE = 64 * ROWS;  // at most; fewer where more threads are to have work

// One piece of one KV head as floats, for reading by many rows: keys transposed, so that rows need no sums across lanes.
struct Unpacked {
  int dim, count = 0;
  std::vector<float> keys;    // [dim, PIECE]
  std::vector<float> values;  // [PIECE, dim]

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
    int padded = (count + W - 1) / W * W;
    for (int base = 0; base < padded; base += W)
      for (int d = 0; d < dim; d += W) {
        float block[W][W];
        for (int i = 0; i < W; i++) store(block[i], load(k + std::min(base + i, count - 1) * b.token_stride + d));
        for (int i = 0; i < W; i++) {
          F column;
          for (int j = 0; j < W; j++) column[j] = block[j][i];
          store(&keys[(size_t)(d + i) * PIECE + base], column);
        }
      }
  }

  template <typename T>
  void take_values(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    const T* v = static_cast<const T*>(b.v) + head * b.head_stride + piece.first * b.token_stride;
    count = piece.count;
    for (int key = 0; key < count; key++)
      for (int d = 0; d < dim; d += W) store(&values[(size_t)key * dim + d], load(v + key * b.token_stride + d));
  }

  // Logits of the keys of `seen`, a few more being filled with what stands beside them.
  void score(const float* const* q, float scale, Span seen, float (*logits)[PIECE]) const {
    for (int base = down(seen.begin, VECTORS * W); base < seen.end; base += VECTORS * W) {
      F acc[ROWS][VECTORS] = {};
      for (int d = 0; d < dim; d++) {
        const float* row = &keys[(size_t)d * PIECE + base];
        F k[VECTORS];
        for (int j = 0; j < VECTORS; j++) k[j] = load(row + j * W);
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
    for (int base = 0; base < dim; base += VECTORS * W) {
      int vectors = std::min(VECTORS, (dim - base) / W);
      if (vectors == VECTORS)
        gather_columns<VECTORS>(base, weights, seen, out);
      else
        for (int j = 0; j < vectors; j++) gather_columns<1>(base + j * W, weights, seen, out);
    }
  }

  template <int N>
  void gather_columns(int base, const float (*weights)[PIECE], Span seen, float (*out)[DIM_MAX]) const {
    F acc[ROWS][N] = {};
    for (int key = seen.begin; key < seen.end; key++) {
      const float* row = &values[(size_t)key * dim + base];
      F v[N];
      for (int j = 0; j < N; j++) v[j] = load(row + j * W);
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
