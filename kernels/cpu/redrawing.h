// Guessed logits of chunks, kept so that their sketches are read once however often is drawn from them.
#pragma once

#include "drawn_rows.h"

namespace {

struct Redrawing : DrawnRows {
  using DrawnRows::DrawnRows;

  // Guessed logits [query heads of the group][CHUNK] of a chunk.
  void guess_chunk(const Chunk& chunk, int head, const SketchQuery* queries, float* guesses) const {
    with_heads([&](auto heads) { guess_chunk<heads>(chunk, head, queries, guesses); });
  }

  // The keys that are read whatever is drawn.
  void take_certain(const Chunk& chunk, int head, Chosen& chosen) const {
    chosen.count = 0;
    for (int g = 0; g * KEYS < chunk.count; g++)
      for (uint32_t sure = certain(chunk, head, g) & existing(chunk, g); sure; sure &= sure - 1)
        chosen.keys[chosen.count++] = g * KEYS + __builtin_ctz(sure);
    for (int h = 0; h < group; h++) std::fill_n(chosen.added[h], chosen.count + W, 0.0f);
  }

  // Of the others those that are drawn with this seed, at the row's thresholds.
  void draw_from(const float* guesses, const Chunk& chunk, int row, int head, uint32_t seed, Chosen& chosen) const {
    with_heads([&](auto heads) { draw_from<heads>(guesses, chunk, row, head, seed, chosen); });
  }

 private:
  template <int HEADS>
  void guess_chunk(const Chunk& chunk, int head, const SketchQuery* queries, float* guesses) const {
    for (int g = 0; g < groups_of(chunk); g++) {
      I products[HEADS][VECTORS_OF_KEYS];
      multiply<HEADS>(sketch(chunk, head, g), queries, s, products);
      for (int h = 0; h < HEADS; h++)
        for (int part = 0; part < VECTORS_OF_KEYS; part++)
          store(guesses + h * CHUNK + g * KEYS + part * W, logits(products[h][part], queries[h]));
    }
  }

  template <int HEADS>
  void draw_from(const float* guesses, const Chunk& chunk, int row, int head, uint32_t seed, Chosen& chosen) const {
    const float* thresholds = s.thresholds + (int64_t)row * a.heads + head * group;
    uint32_t state = mix(mix(seed + (uint32_t)a.positions[row]) + (uint32_t)head);
    chosen.count = 0;
    for (int g = 0; g * KEYS < chunk.count; g++) {
      F margins[VECTORS_OF_KEYS];
      draw(state, chunk.block->kv.position + chunk.first + g * KEYS, margins);
      alignas(64) float passing[HEADS][KEYS];
      uint32_t any = 0;
      for (int h = 0; h < HEADS; h++)
        for (int part = 0; part < VECTORS_OF_KEYS; part++) {
          F lacking = thresholds[h] - load(guesses + h * CHUNK + g * KEYS + part * W);
          I drawn = margins[part] > lacking;
          any |= bits_of(drawn) << (part * W);
          store(passing[h] + part * W, drawn ? lacking : splat(INFINITY));
        }
      if (any &= existing(chunk, g) & ~certain(chunk, head, g)) keep<HEADS>(any, 0, g * KEYS, passing, chosen);
    }
    for (int h = 0; h < HEADS; h++)
      for (int i = 0; i < chosen.count; i += W) store(chosen.added[h] + i, on_top(load(chosen.added[h] + i)));
  }
};

}  // namespace
