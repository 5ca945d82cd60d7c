// Reading keys and values that are scattered over blocks, each once for all query heads of a KV head.
#pragma once

#include <vector>

#include "few_rows.h"

namespace {

constexpr int PICKED = 256;   // keys of one partial result
constexpr int HEADS_OF_KV = 8;

// Up to PICKED rows of one KV head, wherever they lie.
struct Picked {
  int count = 0;
  const void* k[PICKED + 4];
  const void* v[PICKED + 4];
  float added[HEADS_OF_KV][PICKED + W];  // what logits get on top, -inf where a query head doesn't use the key

  void take(const LsBlock& b, int head, int token) {
    int64_t at = head * b.head_stride + token * b.token_stride, size = b.dtype == 0 ? 2 : 4;
    k[count] = static_cast<const char*>(b.k) + at * size;
    v[count++] = static_cast<const char*>(b.v) + at * size;
  }
};

// Which of the blocks has the token at a position; blocks stand in order.
inline const LsBlock& block_of(const LsBlock* blocks, int count, int position) {
  return *(std::upper_bound(blocks, blocks + count, position, [](int at, const LsBlock& b) { return at < b.position; }) - 1);
}

struct PickedRows {
  const LsAttend& a;
  Picked& picked;

  static constexpr int AHEAD = 16;  // keys that are asked for before they are read

  template <typename T>
  const T* row(const void* const* rows, int i) const {
    return static_cast<const T*>(rows[std::min(i, picked.count - 1)]);
  }

  // Have a row on its way.
  template <typename T>
  void ask_for(const T* row) const {
    for (int d = 0; d < a.dim; d += 64 / (int)sizeof(T)) __builtin_prefetch(row + d);
  }

  // q · k for query heads [0, ROWS) from q on.
  template <typename T, int ROWS>
  void score(const float* q, float (*products)[PICKED + W]) const {
    for (int key = 0; key < picked.count; key += 4) {
      const T* rows[4];
      for (int j = 0; j < 4; j++) {
        rows[j] = row<T>(picked.k, key + j);
        ask_for(row<T>(picked.k, key + j + AHEAD));
        ask_for(row<T>(picked.v, key + j));
      }
      F acc[ROWS][4] = {};
      for (int d = 0; d < a.dim; d += W) {
        F keys[4];
        for (int j = 0; j < 4; j++) keys[j] = load(rows[j] + d);
        for (int r = 0; r < ROWS; r++) {
          F x = load(q + r * a.dim + d);
          for (int j = 0; j < 4; j++) acc[r][j] = fused(x, keys[j], acc[r][j]);
        }
      }
      for (int r = 0; r < ROWS; r++) sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], products[r] + key);
    }
  }

  template <typename T, int ROWS, int N>
  void mix(const float (*weights)[PICKED + W], int base, float* const* values) const {
    F acc[ROWS][N] = {};
    for (int key = 0; key < picked.count; key++) {
      const T* from = static_cast<const T*>(picked.v[key]) + base;
      for (int j = 0; j < N; j++) {
        F x = load(from + j * W);
        for (int r = 0; r < ROWS; r++) acc[r][j] = fused(x, splat(weights[r][key]), acc[r][j]);
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) store(values[r] + base + j * W, acc[r][j]);
  }

  // As `weigh`, where logits may be -inf, all of them too.
  static Partial weigh_some(float* logits, int n) {
    for (int i = 0; i < n; i++)
      if (logits[i] != NOTHING) return weigh(logits, {0, n}, {0, n});
    std::fill_n(logits, n, 0.0f);
    return Partial();
  }

  // Query heads [h, h + ROWS) of the KV head whose first one is at q. on_top(h, products) has `added` of a head filled in.
  template <typename T, int ROWS, class OnTop>
  void read(const float* q, int h, OnTop& on_top, Partial* partials, float* const* values) const {
    alignas(64) float logits[ROWS][PICKED + W];
    int n = picked.count;
    score<T, ROWS>(q + h * a.dim, logits);
    for (int r = 0; r < ROWS; r++) {
      on_top(h + r, logits[r]);
      for (int i = 0; i < n; i += W) store(logits[r] + i, load(logits[r] + i) * a.scale);
      if (a.softcap != 0) cap(logits[r], {0, n}, a.softcap);
      for (int i = 0; i < n; i += W) store(logits[r] + i, load(logits[r] + i) + load(picked.added[h + r] + i));
      partials[h + r] = weigh_some(logits[r], n);
    }
    int base = 0;
    for (; base + 4 * W <= a.dim; base += 4 * W) mix<T, ROWS, 4>(logits, base, values + h);
    for (; base < a.dim; base += W) mix<T, ROWS, 1>(logits, base, values + h);
  }

  template <typename T, class OnTop>
  void read(const float* q, int group, OnTop& on_top, Partial* partials, float* const* values) const {
    for (int h = 0; h < group; h += TILE) {
      switch (std::min(TILE, group - h)) {
        case 1: read<T, 1>(q, h, on_top, partials, values); break;
        case 2: read<T, 2>(q, h, on_top, partials, values); break;
        case 3: read<T, 3>(q, h, on_top, partials, values); break;
        default: read<T, 4>(q, h, on_top, partials, values);
      }
    }
  }
};

// Rows of a call, each KV head of which reads pieces of blocks that are read whole, and keys picked for it: partial results of
// fixed keys, merged in order, so that they depend neither on other rows nor on the number of threads in any bit.
struct PickedJob {
  const LsAttend& a;
  int group;
  std::vector<Piece> pieces;   // of the blocks that are read whole
  std::vector<int64_t> first;  // task of each (row, KV head); then the number of tasks
  std::vector<Partial> partials;
  float* values = nullptr;

  explicit PickedJob(const LsAttend& call) : a(call), group(a.heads / a.kv_heads) {
    int highest = *std::max_element(a.positions, a.positions + a.rows);
    for (int b = 0; b < a.block_count; b++)
      for (int at = 0; at < a.blocks[b].length && a.blocks[b].position + at <= highest; at += PIECE)
        pieces.push_back({&a.blocks[b], at, std::min(PIECE, a.blocks[b].length - at)});
  }

  int units() const { return a.rows * a.kv_heads; }
  int row(int unit) const { return unit / a.kv_heads; }
  int head(int unit) const { return unit % a.kv_heads; }
  const float* q(int unit) const { return a.q + (int64_t)unit * group * a.dim; }

  // picked(unit): the number of runs of up to PICKED keys that it reads.
  template <class Runs>
  void plan(Runs runs) {
    static thread_local std::vector<float> room;
    first.assign(1, 0);
    for (int unit = 0; unit < units(); unit++) first.push_back(first.back() + (int64_t)pieces.size() + runs(unit));
    size_t needed = (size_t)first.back() * group;
    partials.assign(needed, Partial());
    if (room.size() < needed * a.dim) room.resize(needed * a.dim);
    values = room.data();
  }

  // Task by task; `read_run(unit, run, partials, values)` reads what was picked.
  template <class ReadRun>
  void read(int64_t task, ReadRun read_run) {
    int unit = (int)(std::upper_bound(first.begin(), first.end(), task) - first.begin()) - 1;
    int index = (int)(task - first[unit]);
    float* at[HEADS_OF_KV];
    for (int h = 0; h < group; h++) at[h] = values + ((size_t)task * group + h) * a.dim;
    if (index < (int)pieces.size())
      read_whole(pieces[index], unit, &partials[task * group], at);
    else
      read_run(unit, index - (int)pieces.size(), &partials[task * group], at);
  }

  void read_whole(const Piece& piece, int unit, Partial* partials, float* const* values) const {
    alignas(64) float logits[TILE * (PIECE + W)];
    int own = std::clamp(a.positions[row(unit)] - piece.block->position - piece.first + 1, 0, piece.count);
    for (int h = 0; own > 0 && h < group; h += TILE) {
      Tile tile;
      tile.rows = std::min(TILE, group - h);
      tile.any = {0, own};
      for (int r = 0; r < tile.rows; r++) {
        tile.q[r] = q(unit) + (h + r) * a.dim;
        tile.logits[r] = logits + r * (PIECE + W);
        tile.own[r] = tile.any;
      }
      read_piece(a, piece, head(unit), tile, partials + h, values + h);
    }
  }

  // What query head i of all rows gives.
  void merge_head(int64_t i) {
    float* out = a.out + i * a.dim;
    std::fill_n(out, a.dim, 0.0f);
    Partial total;
    for (int64_t task = first[i / group]; task < first[i / group + 1]; task++) {
      size_t from = task * group + i % group;
      merge(total, out, partials[from], values + from * a.dim, a.dim);
    }
    normalise(total, out, a.dim, a.lse ? a.lse + i : nullptr);
  }
};

}  // namespace
