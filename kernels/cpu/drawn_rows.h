// Reading what was drawn of sketched chunks, and pieces of blocks that are read whole, into partial results for single rows.
#pragma once

#include <vector>

#include "choosing.h"
#include "scattered.h"

namespace {

// What is told of each chunk that was read: `told(h, weights)` gets a query head's weights as shares of the chunk's largest.
struct Silent {
  void operator()(int, const float*) const {}
};

struct DrawnRows : Choosing {
  std::vector<Piece> pieces;  // of the blocks that are read whole

  explicit DrawnRows(const LsSampled& call) : Choosing(call), pieces(pieces_of(a)) {}

  template <typename T, class Told>
  void read(const Chunk& chunk, const Chosen& chosen, int row, int head, Partial* partials, float* const* values, Told& told) const {
    const LsBlock& b = chunk.block->kv;
    int64_t at = head * b.head_stride + chunk.first * b.token_stride;
    InBlock<T> place = {static_cast<const T*>(b.k) + at, static_cast<const T*>(b.v) + at, b.token_stride, chosen.keys, chosen.count};
    auto on_top = [&](int h, const float*) { return chosen.added[h]; };
    read_scattered<T, CHUNK + W>(a, place, a.q + ((int64_t)row * a.heads + head * group) * a.dim, group, on_top, told, partials, values);
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
    count_read(row, head, chosen.count, used);
  }

  // rows: of K and V that were read; used: keys, summed over query heads.
  void count_read(int row, int head, int rows, int used) const {
    int32_t* counted = s.read + 2 * ((int64_t)row * a.kv_heads + head);
#pragma omp atomic
    counted[0] += rows;
#pragma omp atomic
    counted[1] += used;
  }

  // One piece of a block that is read whole, for one row.
  void read_whole(const Piece& piece, int row, int head, Partial* partials, float* const* values) const {
    read_for_row(a, piece, row, head, partials, values);
  }
};

}  // namespace
