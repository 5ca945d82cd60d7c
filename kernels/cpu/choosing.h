// Choosing keys by their sketches: how high a guessed logit must be for so many keys to be drawn, and which are.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "pieces.h"
#include "sketch.h"

namespace {

constexpr int CHUNK = 1024;       // keys that one thread takes at a time
constexpr int SAMPLE = 1024;      // keys, about, by which the threshold is found
constexpr int GROUPS_AHEAD = 16;  // of keys, whose sketches are asked for before they are scanned
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
  struct Looked {
    int chunk, group;
  };
  std::vector<Looked> looked;  // the groups of keys by which thresholds are found: one of so many
  int group;                   // query heads of a KV head

  explicit Choosing(const LsSampled& call) : s(call), a(call.dense), group(a.heads / a.kv_heads) {
    int64_t keys = 0;
    for (int b = 0; b < s.block_count; b++)
      for (int first = 0; first < s.blocks[b].kv.length; first += CHUNK) {
        chunks.push_back({&s.blocks[b], first, std::min(CHUNK, s.blocks[b].kv.length - first)});
        keys += chunks.back().count;
      }
    int step = (int)std::max<int64_t>(1, keys / SAMPLE), next = 0;
    for (int i = 0; i < (int)chunks.size(); i++) {
      int groups = groups_of(chunks[i]);
      for (; next < groups; next += step) looked.push_back({i, next});
      next -= groups;
    }
  }

  static int groups_of(const Chunk& chunk) { return (chunk.count + KEYS - 1) / KEYS; }

  int group_bytes() const { return PLANE * (s.fours + s.twos + s.ones); }

  const uint8_t* sketch(const Chunk& chunk, int head, int group_of_keys) const {
    return chunk.block->sketch + head * chunk.block->sketch_stride +
           (int64_t)(chunk.first / KEYS + group_of_keys) * group_bytes();
  }

  // Have a group of a chunk, or behind its last one a group of the next, on its way.
  void ask_for_sketch(const Chunk& chunk, const Chunk* next, int head, int group_of_keys) const {
    int groups = groups_of(chunk);
    if (group_of_keys < groups)
      ask_for(sketch(chunk, head, group_of_keys), group_bytes());
    else if (next && group_of_keys - groups < groups_of(*next))
      ask_for(sketch(*next, head, group_of_keys - groups), group_bytes());
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

  // The thresholds of a KV head's query heads: over the keys looked at, min(1, e^(guess - threshold)) sums up to about their share of
  // the budget.
  void find_thresholds(int row, int head, const SketchQuery* queries, std::vector<float>& guesses) const {
    with_heads([&](auto heads) { find_thresholds<heads>(row, head, queries, guesses); });
  }

  template <int HEADS>
  void find_thresholds(int row, int head, const SketchQuery* queries, std::vector<float>& guesses) const {
    size_t length = looked.size() * KEYS;
    guesses.resize(HEADS * length);
    for (const Looked& each : looked) ask_for(sketch(chunks[each.chunk], head, each.group), group_bytes());
    int64_t seen = 0, open = s.open[head];
    for (size_t i = 0; i < looked.size(); i++) {
      const Chunk& chunk = chunks[looked[i].chunk];
      uint32_t uncertain = existing(chunk, looked[i].group) & ~certain(chunk, head, looked[i].group);
      seen += __builtin_popcount(uncertain);
      I products[HEADS][VECTORS_OF_KEYS];
      multiply<HEADS>(sketch(chunk, head, looked[i].group), queries, s, products);
      for (int h = 0; h < HEADS; h++) {
        float* at = &guesses[h * length + i * KEYS];
        for (int part = 0; part < VECTORS_OF_KEYS; part++) store(at + part * W, logits(products[h][part], queries[h]));
        if (uncertain != 0xFFFF)
          for (int key = 0; key < KEYS; key++)
            if (!(uncertain >> key & 1)) at[key] = NOTHING;
      }
    }
    for (int h = 0; h < HEADS; h++) {
      int64_t of = (int64_t)row * a.heads + head * group + h;
      s.thresholds[of] = threshold(&guesses[h * length], length, s.budgets[of] * (open ? (float)seen / open : 0), seen);
    }
  }

  // Newton steps on the logarithm of the count, from the threshold that would do if no key were certain.
  static float threshold(const float* guesses, size_t length, float wanted, int64_t seen) {
    if (wanted >= seen) return EVERYTHING;
    F highest = splat(NOTHING);
    for (size_t i = 0; i < length; i += W) {
      F x = load(guesses + i);
      highest = highest > x ? highest : x;
    }
    float lanes[W];
    store(lanes, highest);
    float top = *std::max_element(lanes, lanes + W);
    if (top == NOTHING) return EVERYTHING;
    auto count = [&](float t, float& below) {
      F saturated = {}, partial = {};
      for (size_t i = 0; i < length; i += W) {
        F x = load(guesses + i) - t;
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

  // next: the chunk that comes after this one, if the same thread takes it.
  void choose(const Chunk& chunk, const Chunk* next, int row, int head, const SketchQuery* queries, Chosen& chosen) const {
    with_heads([&](auto heads) { choose<heads>(chunk, next, row, head, queries, chosen); });
  }

  template <int HEADS>
  void choose(const Chunk& chunk, const Chunk* next, int row, int head, const SketchQuery* queries, Chosen& chosen) const {
    const float* thresholds = s.thresholds + (int64_t)row * a.heads + head * group;
    uint32_t state = mix(mix(s.seed + (uint32_t)a.positions[row]) + (uint32_t)head);
    chosen.count = 0;
    for (int g = 0; g * KEYS < chunk.count; g++) {
      uint32_t there = existing(chunk, g), sure = certain(chunk, head, g) & there, any = sure;
      F margins[VECTORS_OF_KEYS], lacking[HEADS][VECTORS_OF_KEYS];
      I products[HEADS][VECTORS_OF_KEYS];
      ask_for_sketch(chunk, next, head, g + GROUPS_AHEAD);
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

  // f(std::integral_constant<int, group>).
  template <class F>
  void with_heads(F f) const {
    switch (group) {
      case 1: return f(std::integral_constant<int, 1>());
      case 2: return f(std::integral_constant<int, 2>());
      case 3: return f(std::integral_constant<int, 3>());
      case 4: return f(std::integral_constant<int, 4>());
      case 5: return f(std::integral_constant<int, 5>());
      case 6: return f(std::integral_constant<int, 6>());
      case 7: return f(std::integral_constant<int, 7>());
      default: return f(std::integral_constant<int, 8>());
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
