// Choosing keys by their sketches: how high a guessed logit must be for so many keys to be drawn, and which are.
#pragma once

#include <algorithm>
#include <vector>

#include "pieces.h"
#include "sketch.h"

namespace {

constexpr int CHUNK = 1024;       // keys that one thread takes at a time
constexpr int SAMPLE = 1024;      // keys, about, by which the threshold is found
constexpr int HEADS_MAX = 8;      // query heads of a KV head
constexpr float EVERYTHING = -1e30f;

struct Chunk {
  const LsSketchBlock* block;
  int first, count;
};

// What is read of a chunk: keys, and for each query head what their logits get on top, -inf where the head didn't draw it.
struct Chosen {
  int count = 0;
  int32_t keys[CHUNK + W];
  float added[HEADS_MAX][CHUNK + W];
};

struct Choosing {
  const LsSampled& s;
  const LsAttend& a;
  std::vector<Chunk> chunks;
  int group, step;  // query heads of a KV head; of so many groups of keys one is looked at for the thresholds

  explicit Choosing(const LsSampled& call) : s(call), a(call.dense), group(a.heads / a.kv_heads) {
    int64_t keys = 0;
    for (int b = 0; b < s.block_count; b++)
      for (int first = 0; first < s.blocks[b].kv.length; first += CHUNK) {
        chunks.push_back({&s.blocks[b], first, std::min(CHUNK, s.blocks[b].kv.length - first)});
        keys += chunks.back().count;
      }
    step = (int)std::max<int64_t>(1, keys / SAMPLE);
  }

  const uint8_t* sketch(const Chunk& chunk, int head, int group_of_keys) const {
    return chunk.block->sketch + head * chunk.block->sketch_stride +
           (int64_t)(chunk.first / KEYS + group_of_keys) * PLANE * (s.fours + s.twos + s.ones);
  }

  // Have a key and its value on their way.
  void ask_for_key(const Chunk& chunk, int head, int key) const {
    const LsBlock& b = chunk.block->kv;
    int64_t at = head * b.head_stride + (chunk.first + key) * b.token_stride;
    if (b.dtype == 0) {
      ask_for(static_cast<const uint16_t*>(b.k) + at, a.dim);
      ask_for(static_cast<const uint16_t*>(b.v) + at, a.dim);
    } else {
      ask_for(static_cast<const float*>(b.k) + at, a.dim);
      ask_for(static_cast<const float*>(b.v) + at, a.dim);
    }
  }

  // Bits of the group's keys that are read whatever is drawn.
  uint32_t certain(const Chunk& chunk, int head, int group_of_keys) const {
    if (!chunk.block->certain) return 0;
    int groups = (chunk.block->kv.length + KEYS - 1) / KEYS;
    return chunk.block->certain[(int64_t)head * groups + chunk.first / KEYS + group_of_keys];
  }

  static uint32_t existing(const Chunk& chunk, int group_of_keys) {
    int left = chunk.count - group_of_keys * KEYS;
    return left >= KEYS ? 0xFFFF : (1u << left) - 1;
  }

  // The threshold of one query head: over the keys looked at, min(1, e^(guess - threshold)) sums up to about their share of the budget.
  float find_threshold(int row, int head, int h, const SketchQuery& query, std::vector<float>& sampled) const {
    int64_t seen = 0, open = s.open[head];
    sampled.clear();
    int next = 0;
    for (const Chunk& chunk : chunks) {
      int groups = (chunk.count + KEYS - 1) / KEYS;
      for (; next < groups; next += step) {
        uint32_t uncertain = existing(chunk, next) & ~certain(chunk, head, next);
        sampled.resize(sampled.size() + KEYS);
        float* at = &sampled[sampled.size() - KEYS];
        guess(sketch(chunk, head, next), query, s, at);
        seen += __builtin_popcount(uncertain);
        if (uncertain != 0xFFFF)
          for (int key = 0; key < KEYS; key++)
            if (!(uncertain >> key & 1)) at[key] = NOTHING;
      }
      next -= groups;
    }
    return threshold(sampled, s.budgets[(int64_t)row * a.heads + head * group + h] * (open ? (float)seen / open : 0), seen);
  }

  // Newton steps on the logarithm of the count, from the threshold that would do if no key were certain.
  static float threshold(const std::vector<float>& sampled, float wanted, int64_t seen) {
    if (wanted >= seen) return EVERYTHING;
    F highest = splat(NOTHING);
    for (size_t i = 0; i < sampled.size(); i += W) {
      F x = load(&sampled[i]);
      highest = highest > x ? highest : x;
    }
    float lanes[W];
    store(lanes, highest);
    float top = *std::max_element(lanes, lanes + W);
    if (top == NOTHING) return EVERYTHING;
    auto count = [&](float t, float& below) {
      F saturated = {}, partial = {};
      for (size_t i = 0; i < sampled.size(); i += W) {
        F x = load(&sampled[i]) - t;
        I over = x >= F{};
        saturated += over ? splat(1.0f) : F{};
        partial += over ? F{} : exp_nonpositive(over ? F{} : x);
      }
      below = sum(partial);
      return sum(saturated) + below;
    };
    float below, t = top;
    t = top + std::log(std::max(count(top, below), 1e-30f) / wanted);
    for (int i = 0; i < 8; i++) {
      float total = count(t, below);
      if (below <= 0) {
        t -= 1;
        continue;
      }
      float moved = std::clamp(total * std::log(total / wanted) / below, -4.0f, 4.0f);
      t += moved;
      if (std::fabs(moved) < 5e-3f) break;
    }
    return t;
  }

  template <int HEADS>
  void choose(const Chunk& chunk, int row, int head, const SketchQuery* queries, Chosen& chosen) const {
    const float* thresholds = s.thresholds + (int64_t)row * a.heads + head * group;
    uint32_t state = mix(mix(s.seed + (uint32_t)a.positions[row]) + (uint32_t)head);
    chosen.count = 0;
    for (int g = 0; g * KEYS < chunk.count; g++) {
      uint32_t there = existing(chunk, g), sure = certain(chunk, head, g) & there, any = sure;
      F margins[VECTORS_OF_KEYS], lacking[HEADS][VECTORS_OF_KEYS];
      I products[HEADS][VECTORS_OF_KEYS];
      multiply<HEADS>(sketch(chunk, head, g), queries, s, products);
      draw(state, chunk.block->kv.position + chunk.first + g * KEYS, margins);
      for (int h = 0; h < HEADS; h++)
        for (int part = 0; part < VECTORS_OF_KEYS; part++) {
          lacking[h][part] = (thresholds[h] - queries[h].offset) - __builtin_convertvector(products[h][part], F) * queries[h].unit;
          any |= bits_of(margins[part] > lacking[h][part]) << (part * W);
        }
      if (!(any &= there)) continue;
      alignas(64) float passing[HEADS][KEYS];
      for (int h = 0; h < HEADS; h++)
        for (int part = 0; part < VECTORS_OF_KEYS; part++) {
          F x = lacking[h][part];
          store(passing[h] + part * W, margins[part] > x ? x : splat(INFINITY));
        }
      int before = chosen.count;
      keep<HEADS>(any, sure, g * KEYS, passing, chosen);
      for (; before < chosen.count; before++) ask_for_key(chunk, head, chosen.keys[before]);
    }
    for (int h = 0; h < HEADS; h++)
      for (int i = 0; i < chosen.count; i += W) store(chosen.added[h] + i, on_top(load(chosen.added[h] + i)));
  }

  void choose(const Chunk& chunk, int row, int head, const SketchQuery* queries, Chosen& chosen) const {
    switch (group) {
      case 1: return choose<1>(chunk, row, head, queries, chosen);
      case 2: return choose<2>(chunk, row, head, queries, chosen);
      case 3: return choose<3>(chunk, row, head, queries, chosen);
      case 4: return choose<4>(chunk, row, head, queries, chosen);
      case 5: return choose<5>(chunk, row, head, queries, chosen);
      case 6: return choose<6>(chunk, row, head, queries, chosen);
      case 7: return choose<7>(chunk, row, head, queries, chosen);
      default: return choose<8>(chunk, row, head, queries, chosen);
    }
  }

  // The keys of these bits join what was chosen, with how far below the threshold they are; the certain ones are not.
  template <int HEADS>
  static void keep(uint32_t any, uint32_t sure, int first, const float (*lacking)[KEYS], Chosen& chosen) {
#if defined(__AVX512F__)
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_storeu_si512(chosen.keys + chosen.count, _mm512_maskz_compress_epi32(any, _mm512_add_epi32(lanes, _mm512_set1_epi32(first))));
    for (int h = 0; h < HEADS; h++) {
      __m512 kept = _mm512_maskz_mov_ps((__mmask16)~sure, _mm512_load_ps(lacking[h]));
      _mm512_storeu_ps(chosen.added[h] + chosen.count, _mm512_maskz_compress_ps(any, kept));
    }
    chosen.count += __builtin_popcount(any);
#else
    for (; any; any &= any - 1) {
      int key = __builtin_ctz(any), to = chosen.count++;
      chosen.keys[to] = first + key;
      for (int h = 0; h < HEADS; h++) chosen.added[h][to] = sure >> key & 1 ? 0 : lacking[h][key];
    }
#endif
  }
};

}  // namespace
