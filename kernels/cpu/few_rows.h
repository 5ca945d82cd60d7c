// Reading a piece for up to TILE rows, each key and value once and in its stored form: decoding, verification.
#pragma once

#include "pieces.h"

namespace {

constexpr int TILE = 4;  // rows that share one load of a key

struct Tile {
  const float* q[TILE];
  float* logits[TILE];  // PIECE floats each
  Span own[TILE];       // keys of the piece that the row may see
  Span any;             // those that one of the rows may see
  int rows;
};

// Four keys at a time against ROWS rows; beyond the last key the last one is read again and its logits are ignored.
template <typename T, int ROWS>
void score(const T* k, int64_t stride, int dim, float scale, const Tile& tile) {
  for (int key = down(tile.any.begin, 4); key < tile.any.end; key += 4) {
    const T* rows[4];
    for (int j = 0; j < 4; j++) rows[j] = k + std::min(key + j, tile.any.end - 1) * stride;
    F acc[ROWS][4] = {};
    for (int d = 0; d < dim; d += W) {
      F keys[4];
      for (int j = 0; j < 4; j++) keys[j] = load(rows[j] + d);
      for (int r = 0; r < ROWS; r++) {
        F q = load(tile.q[r] + d);
        for (int j = 0; j < 4; j++) acc[r][j] += q * keys[j];
      }
    }
    for (int r = 0; r < ROWS; r++) {
      float s[4];
      sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], s);
      for (int j = 0; j < 4; j++) tile.logits[r][key + j] = s[j] * scale;
    }
  }
}

// N vectors of the output are held in registers at a time.
template <typename T, int ROWS, int N>
void gather_columns(const T* v, int64_t stride, int base, const Tile& tile, float* const* values) {
  F acc[ROWS][N] = {};
  for (int key = tile.any.begin; key < tile.any.end; key++) {
    const T* row = v + key * stride + base;
    for (int j = 0; j < N; j++) {
      F x = load(row + j * W);
      for (int r = 0; r < ROWS; r++) acc[r][j] += x * tile.logits[r][key];
    }
  }
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < N; j++) store(values[r] + base + j * W, acc[r][j]);
}

template <typename T, int ROWS>
void gather(const T* v, int64_t stride, int dim, const Tile& tile, float* const* values) {
  int base = 0;
  for (; base + 4 * W <= dim; base += 4 * W) gather_columns<T, ROWS, 4>(v, stride, base, tile, values);
  for (; base < dim; base += W) gather_columns<T, ROWS, 1>(v, stride, base, tile, values);
}

template <typename T, int ROWS>
void read_rows(const LsAttend& a, const LsBlock& b, int64_t at, const Tile& tile, Partial* partials, float* const* values) {
  score<T, ROWS>(static_cast<const T*>(b.k) + at, b.token_stride, a.dim, a.scale, tile);
  if (a.softcap != 0)
    for (int r = 0; r < ROWS; r++) cap(tile.logits[r], tile.own[r], a.softcap);
  if (!partials) return;
  for (int r = 0; r < ROWS; r++) partials[r] = weigh(tile.logits[r], tile.own[r], tile.any);
  gather<T, ROWS>(static_cast<const T*>(b.v) + at, b.token_stride, a.dim, tile, values);
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

}  // namespace
