// Products of many rows with rows of a matrix, in float32: prefill where there are no fast products of bf16 numbers.
//
// W is unpacked once for all rows of x, a panel of rows at a time, transposed, and meets x in register blocks. A product is one chain
// of multiply-adds over the columns: the same whatever rows stand beside it and for every number of threads. Blocking as in
// Goto and van de Geijn 2008 (doi:10.1145/1356052.1356053).
#pragma once

#include <algorithm>
#include <cstring>

#include "packings.h"
#include "weights.h"

namespace {

constexpr int ACROSS = 3;          // vectors, and
constexpr int DOWN = 4;            // rows of x of a register block: 12 of 16 registers hold sums
constexpr int PANEL = ACROSS * W;  // rows of W
constexpr int DEPTH = 384;         // columns at most of a panel: 36 KiB on AVX2, read from L2 as fast as they are multiplied
constexpr int HEIGHT = 24 * DOWN;  // rows of x whose columns of that depth stay in L2

// Rows of W from `first` of a band on, at most PANEL; `top` is the number of the first in the matrix.
struct Panel {
  const LsBand* band;
  int first, top, rows;
};

// The run of 32 numbers of a row from column `at` on; zeros beyond the last column.
template <class Packing>
inline void unpack_run(const uint8_t* row, int at, int columns, F* out) {
  const uint8_t* block = row + (int64_t)(at / Packing::BLOCK) * Packing::BYTES;
  if (at + RUN <= columns) return Packing::unpack(block, at % Packing::BLOCK / RUN, out);
  uint8_t last[Packing::BYTES] = {};  // plain layouts only
  std::memcpy(last, block, Packing::BYTES / Packing::BLOCK * (columns - at));
  Packing::unpack(last, 0, out);
}

// Columns [begin, end) of a panel, out[column - begin][row]; up to whole runs are written.
template <class Packing>
void unpack_panel(const Panel& panel, int columns, int begin, int end, float* out) {
  for (int group = 0; group < PANEL; group += W)
    for (int at = begin; at < end; at += RUN) {
      F numbers[W][VECTORS];
      for (int i = 0; i < W; i++) {
        int row = panel.first + std::min(group + i, panel.rows - 1);
        unpack_run<Packing>(panel.band->data + row * panel.band->row_bytes, at, columns, numbers[i]);
      }
      for (int v = 0; v < VECTORS; v++) {
        F block[W];
        for (int i = 0; i < W; i++) block[i] = numbers[i][v];
        transpose(block);
        for (int i = 0; i < W; i++) store(out + (at - begin + v * W + i) * PANEL + group, block[i]);
      }
    }
}

// sums[DOWN][PANEL] go on over `count` columns of rows of x and of a panel.
inline void register_block(const float* const* x, const float* panel, int count, float* sums) {
  F acc[DOWN][ACROSS];
  for (int r = 0; r < DOWN; r++)
    for (int v = 0; v < ACROSS; v++) acc[r][v] = load(sums + r * PANEL + v * W);
#pragma GCC unroll 4
  for (int i = 0; i < count; i++) {
    F w[ACROSS];
    for (int v = 0; v < ACROSS; v++) w[v] = load(panel + i * PANEL + v * W);
    for (int r = 0; r < DOWN; r++) {
      F number = splat(x[r][i]);
      for (int v = 0; v < ACROSS; v++) acc[r][v] = fused(number, w[v], acc[r][v]);
    }
  }
  for (int r = 0; r < DOWN; r++)
    for (int v = 0; v < ACROSS; v++) store(sums + r * PANEL + v * W, acc[r][v]);
}

// Rows [begin, end) of x [.., columns] against `count` panels; sums[panel][row - begin][PANEL], rows filled up to whole register blocks.
// `unpacked`: room for count * PANEL * DEPTH floats.
inline void multiply(const Panel* panels, int count, const float* x, int begin, int end, int columns, float* unpacked, float* sums) {
  int height = (end - begin + DOWN - 1) / DOWN * DOWN, blocks = (columns + DEPTH - 1) / DEPTH;
  int depth = ((columns + blocks - 1) / blocks + RUN - 1) / RUN * RUN;
  std::fill_n(sums, (size_t)count * height * PANEL, 0.0f);
  for (int from = 0; from < columns; from += depth) {
    int to = std::min(from + depth, columns);
    for (int p = 0; p < count; p++)
      with_packing(panels[p].band->packing, [&](auto packing) {
        unpack_panel<decltype(packing)>(panels[p], columns, from, to, unpacked + (size_t)p * PANEL * DEPTH);
      });
    for (int low = 0; low < height; low += HEIGHT)
      for (int p = 0; p < count; p++)
        for (int row = low; row < std::min(low + HEIGHT, height); row += DOWN) {
          const float* rows[DOWN];
          for (int r = 0; r < DOWN; r++) rows[r] = x + (int64_t)std::min(begin + row + r, end - 1) * columns + from;
          register_block(rows, unpacked + (size_t)p * PANEL * DEPTH, to - from, sums + ((size_t)p * height + row) * PANEL);
        }
  }
}

}  // namespace
