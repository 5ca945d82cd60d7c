// Attention that reads some blocks whole and of others only keys that are drawn, each weighed by 1 / its probability.
//
// For each row and KV head: logits are guessed from sketches for a part of the keys, which tells how high a key's weight must be for
// so many to be drawn; then every key's guess, plus an exponential variable that the heads of a group share, is held against that. What is
// drawn, and what is certain, is read as it is stored, once for all heads of the group, each weighing its own. Partial results
// are merged in the order of the blocks. Rows don't depend on one another, nor on the number of threads, in any bit.
#include "sampled.h"

#include <omp.h>

#include <vector>

#include "few_rows.h"
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

struct SampledJob {
  const LsSampled& s;
  const LsAttend& a;
  std::vector<Piece> pieces;  // of the blocks that are read whole
  std::vector<Chunk> chunks;
  int group, step;
  int64_t keys = 0;

  explicit SampledJob(const LsSampled& call) : s(call), a(call.dense), group(a.heads / a.kv_heads) {
    int highest = *std::max_element(a.positions, a.positions + a.rows);
    for (int b = 0; b < a.block_count; b++)
      for (int first = 0; first < a.blocks[b].length && a.blocks[b].position + first <= highest; first += PIECE)
        pieces.push_back({&a.blocks[b], first, std::min(PIECE, a.blocks[b].length - first)});
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

  // Bits of the group's keys that are read whatever is drawn, and of those that don't exist.
  uint32_t certain(const Chunk& chunk, int head, int group_of_keys) const {
    if (!chunk.block->certain) return 0;
    int groups = (chunk.block->kv.length + KEYS - 1) / KEYS;
    return chunk.block->certain[(int64_t)head * groups + chunk.first / KEYS + group_of_keys];
  }

  static uint32_t existing(const Chunk& chunk, int group_of_keys) {
    int left = chunk.count - group_of_keys * KEYS;
    return left >= KEYS ? 0xFFFF : (1u << left) - 1;
  }

  // The threshold of one query head: sum over keys of min(1, e^(guess - threshold)) is about the budget.
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
      draw(state, chunk.block->kv.position + chunk.first + g * KEYS, margins);
      for (int part = 0; part < VECTORS_OF_KEYS; part++) {
        I products[HEADS];
        multiply<HEADS>(sketch(chunk, head, g) + part * W * 4, queries, s, products);
        for (int h = 0; h < HEADS; h++) {
          lacking[h][part] = (thresholds[h] - queries[h].offset) - __builtin_convertvector(products[h], F) * queries[h].unit;
          any |= bits_of(margins[part] > lacking[h][part]) << (part * W);
        }
      }
      if (!(any &= there)) continue;
      alignas(64) float passing[HEADS][KEYS];
      for (int h = 0; h < HEADS; h++)
        for (int part = 0; part < VECTORS_OF_KEYS; part++) {
          F x = lacking[h][part];
          store(passing[h] + part * W, margins[part] > x ? x : splat(INFINITY));
        }
      keep<HEADS>(any, sure, g * KEYS, passing, chosen);
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

  static uint32_t bits_of(I truths) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)truths);
#elif defined(__AVX2__)
    return (uint32_t)_mm256_movemask_ps((__m256)truths);
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < W; lane++) bits |= (uint32_t)(truths[lane] & 1) << lane;
    return bits;
#endif
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

  static constexpr int AHEAD = 16;  // keys that are asked for before they are read

  // Have a row on its way.
  template <typename T>
  void ask_for(const T* row) const {
    for (int d = 0; d < a.dim; d += 64 / (int)sizeof(T)) __builtin_prefetch(row + d);
  }

  template <typename T, int ROWS>
  void read(const Chunk& chunk, const Chosen& chosen, int row, int head, int h, Partial* partials, float* const* values) const {
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
        ask_for(k + chosen.keys[std::min(key + j + AHEAD, n - 1)] * b.token_stride);
        ask_for(v + chosen.keys[std::min(key + j, n - 1)] * b.token_stride);
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

  template <typename T>
  void read(const Chunk& chunk, const Chosen& chosen, int row, int head, Partial* partials, float* const* values) const {
    for (int h = 0; h < group; h += TILE) {
      switch (std::min(TILE, group - h)) {
        case 1: read<T, 1>(chunk, chosen, row, head, h, partials + h, values + h); break;
        case 2: read<T, 2>(chunk, chosen, row, head, h, partials + h, values + h); break;
        case 3: read<T, 3>(chunk, chosen, row, head, h, partials + h, values + h); break;
        default: read<T, 4>(chunk, chosen, row, head, h, partials + h, values + h);
      }
    }
  }

  // One piece of a block that is read whole, for one row.
  void read_whole(const Piece& piece, int row, int head, Partial* partials, float* const* values) const {
    alignas(64) float logits[TILE * (PIECE + W)];
    int own = std::clamp(a.positions[row] - piece.block->position - piece.first + 1, 0, piece.count);
    for (int h = 0; h < group; h += TILE) {
      Tile tile;
      tile.rows = std::min(TILE, group - h);
      tile.any = {0, own};
      for (int r = 0; r < tile.rows; r++) {
        tile.q[r] = a.q + ((int64_t)row * a.heads + head * group + h + r) * a.dim;
        tile.logits[r] = logits + r * (PIECE + W);
        tile.own[r] = tile.any;
      }
      if (own > 0) read_piece(a, piece, head, tile, partials + h, values + h);
    }
  }

  void run() const {
    int tasks = (int)(pieces.size() + chunks.size()), coordinates = 8 * s.fours + 16 * s.twos + 32 * s.ones;
    size_t rows = (size_t)a.rows * a.kv_heads, per_row = (size_t)tasks * group;
    std::vector<SketchQuery> queries(rows * group);
    std::vector<Partial> partials(rows * per_row);
    static thread_local std::vector<float> kept;
    if (kept.size() < rows * per_row * a.dim) kept.resize(rows * per_row * a.dim);
    float* values = kept.data();
    std::fill_n(s.read, rows * 2, 0);
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local std::vector<float> sampled;
      static thread_local Chosen chosen;
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)rows * group; i++) {
        int row = (int)(i / a.heads), head = (int)(i % a.heads) / group, h = (int)(i % group);
        const float* map = s.queries + (int64_t)head * a.dim * coordinates;
        queries[i].take(a.q + i * a.dim, map, a.dim, s, a.scale);
        s.thresholds[i] = find_threshold(row, head, h, queries[i], sampled);
      }
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)rows * tasks; i++) {
        int64_t of = i / tasks;
        int task = (int)(i % tasks), row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        size_t base = of * per_row + (size_t)task * group;
        float* at[HEADS_MAX];
        for (int h = 0; h < group; h++) at[h] = values + (base + h) * a.dim;
        if (task < (int)pieces.size()) {
          read_whole(pieces[task], row, head, &partials[base], at);
          continue;
        }
        const Chunk& chunk = chunks[task - pieces.size()];
        choose(chunk, row, head, &queries[of * group], chosen);
        if (chosen.count == 0) continue;
        if (chunk.block->kv.dtype == 0)
          read<uint16_t>(chunk, chosen, row, head, &partials[base], at);
        else
          read<float>(chunk, chosen, row, head, &partials[base], at);
        int used = 0;
        for (int h = 0; h < group; h++)
          for (int key = 0; key < chosen.count; key++) used += chosen.added[h][key] != NOTHING;
#pragma omp atomic
        s.read[of * 2] += chosen.count;
#pragma omp atomic
        s.read[of * 2 + 1] += used;
      }
#pragma omp for schedule(static)
      for (int64_t i = 0; i < (int64_t)rows * group; i++) {
        int64_t of = i / group;
        int h = (int)(i % group), row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        int64_t to = (int64_t)row * a.heads + head * group + h;
        float* out = a.out + to * a.dim;
        std::fill_n(out, a.dim, 0.0f);
        Partial total;
        for (int task = 0; task < tasks; task++) {
          size_t from = of * per_row + (size_t)task * group + h;
          merge(total, out, partials[from], values + from * a.dim, a.dim);
        }
        normalise(total, out, a.dim, a.lse ? a.lse + to : nullptr);
      }
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(sampled_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsSampled* call) { SampledJob(*call).run(); }
