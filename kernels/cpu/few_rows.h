// Reading a piece for up to TILE rows, each key and value once and in its stored form: decoding, verification.
//
// Memory is what takes the time. A processor fetches ahead of several places at once and faster so than ahead of one (30 against 18 GB/s
// on two cores of an EPYC 7003): a piece is read at four places in turn.
#pragma once

#include <vector>

#include "pieces.h"

namespace {

constexpr int TILE = 4;       // rows that share one load of a key
constexpr int STRETCH = 512;  // keys of a piece: places that are far apart are fetched from faster than near ones
constexpr int PLACES = 4;
constexpr int REGISTERS = W == 16 ? 32 : 16;

struct Tile {
  const float* q[TILE];
  float* logits[TILE];  // STRETCH + W floats each
  Span own[TILE];       // keys of the piece that the row may see
  Span any;             // those that one of the rows may see
  int rows;
};

// ---- two vectors of a row at a time ----
//
// Of 2 W bf16 numbers the even ones stand in the lower halves of W words and the odd ones in the upper: a shift and a mask make
// two vectors of floats, and what they meet is arranged the same way. Floats stay in their order.

struct Two {
  F first, second;
};

inline Two load_two(const float* p) { return {load(p), load(p + W)}; }

inline Two load_two(const uint16_t* p) {
  U both;
  std::memcpy(&both, p, sizeof both);
  U even = both << 16, odd = both & 0xFFFF0000u;
  return {(F)even, (F)odd};
}

template <typename T>
constexpr bool SPLIT = sizeof(T) == 2;

// A row of floats in the order in which a row of T is loaded.
template <typename T>
void arrange(const float* from, int dim, float* to) {
  int d = 0;
  if (SPLIT<T>)
    for (; d + 2 * W <= dim; d += 2 * W)
      for (int i = 0; i < W; i++) {
        to[d + i] = from[d + 2 * i];
        to[d + W + i] = from[d + 2 * i + 1];
      }
  std::copy(from + d, from + dim, to + d);
}

// Back again.
template <typename T>
void restore(const float* from, int dim, float* to) {
  int d = 0;
  if (SPLIT<T>)
    for (; d + 2 * W <= dim; d += 2 * W)
      for (int i = 0; i < W; i++) {
        to[d + 2 * i] = from[d + i];
        to[d + 2 * i + 1] = from[d + W + i];
      }
  std::copy(from + d, from + dim, to + d);
}

// ---- keys ----

// Of a row the products are added up in one order however many keys and rows are taken together: as many as registers hold, and
// enough for the additions not to wait for one another.
template <int ROWS>
constexpr int KEYS_OF = REGISTERS == 32 || ROWS <= 2 ? 4 : 2;

// Logits of KEYS_OF<ROWS> keys, `step` apart; beyond the last one, `end` - 1, that one is read again. q: arranged.
template <typename T, int ROWS>
void score_keys(const T* k, int64_t stride, int dim, float scale, int key, int step, int end, const Tile& tile,
                const float (*q)[DIM_MAX]) {
  constexpr int N = KEYS_OF<ROWS>, SUMS = (ROWS * N + 3) / 4 * 4;
  const T* rows[N];
  for (int j = 0; j < N; j++) rows[j] = k + std::min(key + j * step, end - 1) * stride;
  F acc[SUMS] = {};
  int d = 0;
  for (; d + 2 * W <= dim; d += 2 * W) {
    for (int j = 0; j < N; j++) {
      Two x = load_two(rows[j] + d);
      for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d), x.first, acc[r * N + j]);
      for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d + W), x.second, acc[r * N + j]);
    }
  }
  for (; W == 16 && d < dim; d += W)
    for (int j = 0; j < N; j++) {
      F x = load(rows[j] + d);
      for (int r = 0; r < ROWS; r++) acc[r * N + j] = fused(load(q[r] + d), x, acc[r * N + j]);
    }
  alignas(64) float sums[SUMS];
  for (int i = 0; i < SUMS; i += 4) sum4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3], sums + i);
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) tile.logits[r][key + j * step] = sums[r * N + j] * scale;
}

template <typename T, int ROWS>
void score(const T* k, int64_t stride, int dim, float scale, const Tile& tile) {
  constexpr int N = KEYS_OF<ROWS>, STEP = STRETCH / PLACES;
  alignas(64) float q[ROWS][DIM_MAX];
  for (int r = 0; r < ROWS; r++) arrange<T>(tile.q[r], dim, q[r]);
  if (tile.any.begin == 0 && tile.any.end == STRETCH)
    for (int i = 0; i < STEP; i++)
      for (int key = i; key < STRETCH; key += N * STEP) score_keys<T, ROWS>(k, stride, dim, scale, key, STEP, STRETCH, tile, q);
  else
    for (int key = tile.any.begin; key < tile.any.end; key += N) score_keys<T, ROWS>(k, stride, dim, scale, key, 1, tile.any.end, tile, q);
}

// ---- values ----

// The keys of `any` whose values are added up together, column by column, so that their rows stay in L1: a few of each place. In one
// order whatever `any` is, so that a row's sums don't depend on it.
constexpr int EACH = 4, BLOCKS = STRETCH / PLACES / EACH;

struct Together {
  Span at[PLACES];

  Together(int block, Span any) {
    for (int place = 0; place < PLACES; place++) {
      int first = place * (STRETCH / PLACES) + block * EACH;
      at[place] = {std::max(first, any.begin), std::min(first + EACH, any.end)};
    }
  }

  bool empty() const {
    return std::all_of(at, at + PLACES, [](Span span) { return span.empty(); });
  }

  // Have the n-th of their rows on its way.
  template <typename T>
  void ask(int n, const T* v, int64_t stride, int dim) const {
    int key = at[n / EACH].begin + n % EACH;
    if (key < at[n / EACH].end) ask_for(v + key * stride, dim);
  }
};

// Adds the weighed values of these keys to N pairs of vectors of each row's sum, from column `base` on.
template <typename T, int ROWS, int N>
__attribute__((always_inline)) inline void gather_columns(const T* v, int64_t stride, int base, const Together& keys, const Tile& tile,
                                                          float (*sums)[DIM_MAX]) {
  Two acc[ROWS][N];
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) acc[r][j] = {load(sums[r] + base + j * 2 * W), load(sums[r] + base + j * 2 * W + W)};
  for (const Span& at : keys.at) {
    const T* row = v + at.begin * stride + base;
    for (int key = at.begin; key < at.end; key++, row += stride) {
      F weights[ROWS];
      for (int r = 0; r < ROWS; r++) weights[r] = splat(tile.logits[r][key]);
      for (int j = 0; j < N; j++) {
        Two x = load_two(row + j * 2 * W);
        for (int r = 0; r < ROWS; r++) {
          acc[r][j].first = fused(weights[r], x.first, acc[r][j].first);
          acc[r][j].second = fused(weights[r], x.second, acc[r][j].second);
        }
      }
    }
  }
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) {
      store(sums[r] + base + j * 2 * W, acc[r][j].first);
      store(sums[r] + base + j * 2 * W + W, acc[r][j].second);
    }
}

template <int ROWS>
constexpr int PAIRS_OF = ROWS == 1 ? 4 : REGISTERS == 32 || ROWS == 2 ? 2 : 1;

// WHOLE: every key of a whole piece is seen, which is what the compiler then counts on.
template <typename T, int ROWS, bool WHOLE>
void gather(const T* v, int64_t stride, int dim, const Tile& tile, float* const* values) {
  constexpr int N = PAIRS_OF<ROWS>;
  const Span any = WHOLE ? Span{0, STRETCH} : tile.any;
  alignas(64) float sums[ROWS][DIM_MAX];
  for (int r = 0; r < ROWS; r++) std::fill_n(sums[r], dim, 0.0f);
  for (int block = 0; block < BLOCKS; block++) {
    Together keys(block, any), next(block + 1, any);
    if (!WHOLE && keys.empty()) continue;
    int base = 0, asked = block + 1 < BLOCKS ? 0 : PLACES * EACH;
    for (; base + N * 2 * W <= dim; base += N * 2 * W) {
      for (; asked * dim < PLACES * EACH * (base + N * 2 * W); asked++) next.ask(asked, v, stride, dim);
      gather_columns<T, ROWS, N>(v, stride, base, keys, tile, sums);
    }
    for (; asked < PLACES * EACH; asked++) next.ask(asked, v, stride, dim);
    for (; base + 2 * W <= dim; base += 2 * W) gather_columns<T, ROWS, 1>(v, stride, base, keys, tile, sums);
    for (; W == 16 && base < dim; base += W)
      for (int r = 0; r < ROWS; r++) {
        F acc = load(sums[r] + base);
        for (const Span& at : keys.at)
          for (int key = at.begin; key < at.end; key++) acc = fused(splat(tile.logits[r][key]), load(v + key * stride + base), acc);
        store(sums[r] + base, acc);
      }
  }
  for (int r = 0; r < ROWS; r++) restore<T>(sums[r], dim, values[r]);
}

// ---- a piece ----

template <typename T, int ROWS>
void read_rows(const LsAttend& a, const LsBlock& b, int64_t at, const Tile& tile, Partial* partials, float* const* values) {
  const T* v = static_cast<const T*>(b.v) + at;
  score<T, ROWS>(static_cast<const T*>(b.k) + at, b.token_stride, a.dim, a.scale, tile);
  if (a.softcap != 0)
    for (int r = 0; r < ROWS; r++) cap(tile.logits[r], tile.own[r], a.softcap);
  if (!partials) return;
  Together first(0, tile.any);
  for (int n = 0; n < PLACES * EACH; n++) first.ask(n, v, b.token_stride, a.dim);
  for (int r = 0; r < ROWS; r++) partials[r] = weigh(tile.logits[r], tile.own[r], tile.any);
  if (tile.any.begin == 0 && tile.any.end == STRETCH)
    gather<T, ROWS, true>(v, b.token_stride, a.dim, tile, values);
  else
    gather<T, ROWS, false>(v, b.token_stride, a.dim, tile, values);
}

template <typename T>
void read_piece(const LsAttend& a, const Piece& piece, int head, const Tile& tile, Partial* partials, float* const* values) {
  const LsBlock& b = *piece.block;
  int64_t at = head * b.head_stride + piece.first * b.token_stride;
  switch (tile.rows) {
    case 1: return read_rows<T, 1>(a, b, at, tile, partials, values);
    case 2: return read_rows<T, 2>(a, b, at, tile, partials, values);
    case 3: return read_rows<T, 3>(a, b, at, tile, partials, values);
    default: return read_rows<T, 4>(a, b, at, tile, partials, values);
  }
}

// Leaves logits in the tile where `partials` is null, else the partial results.
void read_piece(const LsAttend& a, const Piece& piece, int head, const Tile& tile, Partial* partials, float* const* values) {
  if (piece.block->dtype == 0)
    read_piece<uint16_t>(a, piece, head, tile, partials, values);
  else
    read_piece<float>(a, piece, head, tile, partials, values);
}

// ---- single rows ----

// Pieces of all blocks, but for what lies behind every row.
inline std::vector<Piece> pieces_of(const LsAttend& a) {
  std::vector<Piece> pieces;
  int highest = *std::max_element(a.positions, a.positions + a.rows);
  for (int b = 0; b < a.block_count; b++)
    for (int first = 0; first < a.blocks[b].length && a.blocks[b].position + first <= highest; first += STRETCH)
      pieces.push_back({&a.blocks[b], first, std::min(STRETCH, a.blocks[b].length - first)});
  return pieces;
}

// One piece, whatever its block's rows are, for the query heads of one row and KV head.
inline void read_for_row(const LsAttend& a, const Piece& piece, int row, int head, Partial* partials, float* const* values) {
  alignas(64) float logits[TILE * (STRETCH + W)];
  int group = a.heads / a.kv_heads, own = std::clamp(a.positions[row] - piece.block->position - piece.first + 1, 0, piece.count);
  for (int h = 0; own > 0 && h < group; h += TILE) {
    Tile tile;
    tile.rows = std::min(TILE, group - h);
    tile.any = {0, own};
    for (int r = 0; r < tile.rows; r++) {
      tile.q[r] = a.q + ((int64_t)row * a.heads + head * group + h + r) * a.dim;
      tile.logits[r] = logits + r * (STRETCH + W);
      tile.own[r] = tile.any;
    }
    read_piece(a, piece, head, tile, partials + h, values + h);
  }
}

}  // namespace
