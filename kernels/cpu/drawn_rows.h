// Reading what was drawn of sketched chunks, and pieces of blocks that are read whole, into partial results for single rows.
#pragma once

#include <vector>

#include "choosing.h"
#include "few_rows.h"

namespace {

// What is told of each chunk that was read: `told(h, weights)` gets a query head's weights as shares of the chunk's largest.
struct Silent {
  void operator()(int, const float*) const {}
};

struct DrawnRows : Choosing {
  std::vector<Piece> pieces;  // of the blocks that are read whole

  explicit DrawnRows(const LsSampled& call) : Choosing(call) {
    int highest = *std::max_element(a.positions, a.positions + a.rows);
    for (int b = 0; b < a.block_count; b++)
      for (int first = 0; first < a.blocks[b].length && a.blocks[b].position + first <= highest; first += STRETCH)
        pieces.push_back({&a.blocks[b], first, std::min(STRETCH, a.blocks[b].length - first)});
  }

  static constexpr int AHEAD = 16;  // keys that are asked for before they are read

  template <typename T, int ROWS, class Told>
  void read(const Chunk& chunk, const Chosen& chosen, int row, int head, int h, Partial* partials, float* const* values,
            Told& told) const {
    const LsBlock& b = chunk.block->kv;
    int64_t at = head * b.head_stride + chunk.first * b.token_stride;
    const T* k = static_cast<const T*>(b.k) + at;
    const T* v = static_cast<const T*>(b.v) + at;
    const float* q = a.q + ((int64_t)row * a.heads + head * group + h) * a.dim;
    alignas(64) float logits[ROWS][CHUNK + W];
    int n = chosen.count;
    for (int key = 0; key < n; key += 4) {
      const T* rows[4];
      for (int j = 0; j < 4; j++) {
        rows[j] = k + chosen.keys[std::min(key + j, n - 1)] * b.token_stride;
        ask_for(k + chosen.keys[std::min(key + j + AHEAD, n - 1)] * b.token_stride, a.dim);
        ask_for(v + chosen.keys[std::min(key + j, n - 1)] * b.token_stride, a.dim);
      }
      F acc[ROWS][4] = {};
      for (int d = 0; d < a.dim; d += W) {
        F keys_[4];
        for (int j = 0; j < 4; j++) keys_[j] = load(rows[j] + d);
        for (int r = 0; r < ROWS; r++) {
          F x = load(q + r * a.dim + d);
          for (int j = 0; j < 4; j++) acc[r][j] += x * keys_[j];
        }
      }
      for (int r = 0; r < ROWS; r++) {
        float sums[4];
        sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], sums);
        for (int j = 0; j < 4; j++) logits[r][key + j] = sums[j] * a.scale;
      }
    }
    Span all = {0, n};
    for (int r = 0; r < ROWS; r++) {
      if (a.softcap != 0) cap(logits[r], all, a.softcap);
      for (int i = 0; i < n; i += W) store(logits[r] + i, load(logits[r] + i) + load(chosen.added[h + r] + i));
      partials[r] = weigh_drawn(logits[r], n);
      told(h + r, logits[r]);
    }
    int base = 0;
    for (; base + 4 * W <= a.dim; base += 4 * W) gather_drawn<T, ROWS, 4>(v + base, b.token_stride, chosen, logits, base, values);
    for (; base < a.dim; base += W) gather_drawn<T, ROWS, 1>(v + base, b.token_stride, chosen, logits, base, values);
  }

  template <typename T, int ROWS, int N>
  static void gather_drawn(const T* v, int64_t stride, const Chosen& chosen, const float (*weights)[CHUNK + W], int base,
                           float* const* values) {
    F acc[ROWS][N] = {};
    for (int key = 0; key < chosen.count; key++) {
      const T* from = v + chosen.keys[key] * stride;
      for (int j = 0; j < N; j++) {
        F x = load(from + j * W);
        for (int r = 0; r < ROWS; r++) acc[r][j] += x * weights[r][key];
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) store(values[r] + base + j * W, acc[r][j]);
  }

  // As `weigh`, where logits may be -inf, all of them too.
  static Partial weigh_drawn(float* logits, int n) {
    float top = NOTHING;
    for (int i = 0; i < n; i++) top = std::max(top, logits[i]);
    Partial result;
    if (top == NOTHING) {
      std::fill_n(logits, n, 0.0f);
      return result;
    }
    return weigh(logits, {0, n}, {0, n});
  }

  template <typename T, class Told>
  void read(const Chunk& chunk, const Chosen& chosen, int row, int head, Partial* partials, float* const* values, Told& told) const {
    for (int h = 0; h < group; h += TILE) {
      switch (std::min(TILE, group - h)) {
        case 1: read<T, 1>(chunk, chosen, row, head, h, partials + h, values + h, told); break;
        case 2: read<T, 2>(chunk, chosen, row, head, h, partials + h, values + h, told); break;
        case 3: read<T, 3>(chunk, chosen, row, head, h, partials + h, values + h, told); break;
        default: read<T, 4>(chunk, chosen, row, head, h, partials + h, values + h, told);
      }
    }
  }

  // All that was chosen of a chunk, counted.
  template <class Told>
  void read_chosen(const Chunk& chunk, const Chosen& chosen, int row, int head, Partial* partials, float* const* values,
                   Told told) const {
    if (chosen.count == 0) return;
    if (chunk.block->kv.dtype == 0)
      read<uint16_t>(chunk, chosen, row, head, partials, values, told);
    else
      read<float>(chunk, chosen, row, head, partials, values, told);
    int used = 0;
    for (int h = 0; h < group; h++)
      for (int key = 0; key < chosen.count; key++) used += chosen.added[h][key] != NOTHING;
    int32_t* counted = s.read + 2 * ((int64_t)row * a.kv_heads + head);
#pragma omp atomic
    counted[0] += chosen.count;
#pragma omp atomic
    counted[1] += used;
  }

  // One piece of a block that is read whole, for one row.
  void read_whole(const Piece& piece, int row, int head, Partial* partials, float* const* values) const {
    alignas(64) float logits[TILE * (STRETCH + W)];
    int own = std::clamp(a.positions[row] - piece.block->position - piece.first + 1, 0, piece.count);
    for (int h = 0; h < group; h += TILE) {
      Tile tile;
      tile.rows = std::min(TILE, group - h);
      tile.any = {0, own};
      for (int r = 0; r < tile.rows; r++) {
        tile.q[r] = a.q + ((int64_t)row * a.heads + head * group + h + r) * a.dim;
        tile.logits[r] = logits + r * (STRETCH + W);
        tile.own[r] = tile.any;
      }
      if (own > 0) read_piece(a, piece, head, tile, partials + h, values + h);
    }
  }
};

}  // namespace
