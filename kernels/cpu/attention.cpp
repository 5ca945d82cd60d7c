// Dense attention of packed query rows over a list of KV blocks, fp32 throughout.
//
// Keys are taken in pieces of at most PIECE. For one row and one piece the partial result is (maximum, sum, weighed values);
// partials are merged in the order of the blocks. Method: online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867), split
// over keys as in Flash-Decoding.
//
// Few rows (decode, verification): threads share out the pieces, each read once in its own form. Many rows (prefill): threads share
// out the rows, and pieces are unpacked for them. The work inside a piece and the order of merging are the same for a row whatever
// rows stand beside it and however many threads run: within one of the two ways a row's bits never depend on its neighbours.
#include "attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.h"

namespace {

constexpr int PIECE = 256;    // keys of one partial result: 32 KiB of bf16 keys at dim 64, so K and V of a piece stay in L2
constexpr int TILE = 4;       // rows that share one load of a key
constexpr int DIM_MAX = 256;
constexpr int FEW = 32;       // up to this many rows, threads share out the keys; the threshold must not depend on the machine

// Many rows: a register block of ROWS x VECTORS accumulators; a stripe of rows shares one unpacking of a piece.
constexpr int ROWS = W == 16 ? 6 : W == 8 ? 2 : 4;
constexpr int VECTORS = 4;
constexpr int STRIPE = 32 * ROWS;
constexpr float NOTHING = -INFINITY;

struct Partial {
  float max = NOTHING;
  float sum = 0;
};

struct Piece {
  const LsBlock* block;
  int first, count;  // keys of the block
};

struct Tile {
  const float* q[TILE];
  float* logits[TILE];  // PIECE floats each
  int visible[TILE];    // keys of the piece that the row may see; they are the first ones
  int rows;
};

// Four keys at a time against ROWS rows; beyond the last key the last one is read again and its logits are ignored.
template <typename T, int ROWS>
void score(const T* k, int64_t stride, int count, int dim, float scale, const Tile& tile) {
  for (int key = 0; key < count; key += 4) {
    const T* rows[4];
    for (int j = 0; j < 4; j++) rows[j] = k + std::min(key + j, count - 1) * stride;
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

// Logits become weights e^(logit - max); keys the row may not see get none.
Partial weigh(float* logits, int visible, int count) {
  Partial result;
  if (visible <= 0) {
    std::fill(logits, logits + count, 0.0f);
    return result;
  }
  int padded = (count + W - 1) / W * W;
  std::fill(logits + visible, logits + padded, NOTHING);
  F top = splat(NOTHING);
  for (int i = 0; i < padded; i += W) {
    F v = load(logits + i);
    top = top > v ? top : v;
  }
  float lanes[W];
  store(lanes, top);
  result.max = *std::max_element(lanes, lanes + W);
  F total = {};
  for (int i = 0; i < padded; i += W) {
    F w = exp_nonpositive(load(logits + i) - result.max);
    store(logits + i, w);
    total += w;
  }
  result.sum = sum(total);
  return result;
}

template <typename T, int ROWS>
void gather(const T* v, int64_t stride, int count, int dim, const Tile& tile, float* const* values) {
  constexpr int STEP = 4;  // vectors of the output held in registers at a time
  for (int base = 0; base < dim; base += STEP * W) {
    int vectors = std::min(STEP, (dim - base) / W);
    F acc[ROWS][STEP] = {};
    for (int key = 0; key < count; key++) {
      const T* row = v + key * stride + base;
      for (int j = 0; j < vectors; j++) {
        F x = load(row + j * W);
        for (int r = 0; r < ROWS; r++) acc[r][j] += x * tile.logits[r][key];
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < vectors; j++) store(values[r] + base + j * W, acc[r][j]);
  }
}

template <typename T, int ROWS>
void read_rows(const LsBlock& b, int64_t at, int count, int dim, float scale, const Tile& tile, Partial* partials, float* const* values) {
  score<T, ROWS>(static_cast<const T*>(b.k) + at, b.token_stride, count, dim, scale, tile);
  if (!partials) return;
  for (int r = 0; r < ROWS; r++) partials[r] = weigh(tile.logits[r], tile.visible[r], count);
  gather<T, ROWS>(static_cast<const T*>(b.v) + at, b.token_stride, count, dim, tile, values);
}

// Leaves logits in the tile where `partials` is null, else the partial results.
template <typename T>
void read_piece(const Piece& piece, int head, int dim, float scale, const Tile& tile, Partial* partials, float* const* values) {
  const LsBlock& b = *piece.block;
  int64_t at = head * b.head_stride + piece.first * b.token_stride;
  switch (tile.rows) {
    case 1: return read_rows<T, 1>(b, at, piece.count, dim, scale, tile, partials, values);
    case 2: return read_rows<T, 2>(b, at, piece.count, dim, scale, tile, partials, values);
    case 3: return read_rows<T, 3>(b, at, piece.count, dim, scale, tile, partials, values);
    default: return read_rows<T, 4>(b, at, piece.count, dim, scale, tile, partials, values);
  }
}

void read_piece(const Piece& piece, int head, int dim, float scale, const Tile& tile, Partial* partials, float* const* values) {
  if (piece.block->dtype == 0)
    read_piece<uint16_t>(piece, head, dim, scale, tile, partials, values);
  else
    read_piece<float>(piece, head, dim, scale, tile, partials, values);
}

// (total, out) absorbs (part, values); `out` stays unnormalised.
void merge(Partial& total, float* out, const Partial& part, const float* values, int dim) {
  if (part.sum == 0) return;
  float top = std::max(total.max, part.max);
  float old_scale = total.sum == 0 ? 0.0f : std::exp(total.max - top);
  float new_scale = std::exp(part.max - top);
  for (int d = 0; d < dim; d += W) store(out + d, load(out + d) * old_scale + load(values + d) * new_scale);
  total.sum = total.sum * old_scale + part.sum * new_scale;
  total.max = top;
}

void normalise(const Partial& total, float* out, int dim, float* lse) {
  float inverse = total.sum == 0 ? 0.0f : 1.0f / total.sum;
  for (int d = 0; d < dim; d += W) store(out + d, load(out + d) * inverse);
  if (lse) *lse = total.sum == 0 ? NOTHING : total.max + std::log(total.sum);
}

// One piece of one KV head as floats, for reading by many rows: keys transposed, so that rows need no sums across lanes.
struct Unpacked {
  int dim, count = 0;
  std::vector<float> keys;    // [dim, PIECE]
  std::vector<float> values;  // [PIECE, dim]

  explicit Unpacked(int d) : dim(d), keys((size_t)d * PIECE), values((size_t)d * PIECE) {}

  void take(const Piece& piece, int head) {
    if (piece.block->dtype == 0)
      take<uint16_t>(piece, head);
    else
      take<float>(piece, head);
  }

  template <typename T>
  void take(const Piece& piece, int head) {
    const LsBlock& b = *piece.block;
    int64_t at = head * b.head_stride + piece.first * b.token_stride;
    const T* k = static_cast<const T*>(b.k) + at;
    const T* v = static_cast<const T*>(b.v) + at;
    count = piece.count;
    int padded = (count + W - 1) / W * W;
    for (int base = 0; base < padded; base += W)
      for (int d = 0; d < dim; d += W) {
        float block[W][W];
        for (int i = 0; i < W; i++) store(block[i], load(k + std::min(base + i, count - 1) * b.token_stride + d));
        for (int i = 0; i < W; i++) {
          F column;
          for (int j = 0; j < W; j++) column[j] = block[j][i];
          store(&keys[(size_t)(d + i) * PIECE + base], column);
        }
      }
    for (int key = 0; key < count; key++)
      for (int d = 0; d < dim; d += W) store(&values[(size_t)key * dim + d], load(v + key * b.token_stride + d));
  }

  void score(const float* const* q, float scale, float (*logits)[PIECE]) const {
    for (int base = 0; base < count; base += VECTORS * W) {
      F acc[ROWS][VECTORS] = {};
      for (int d = 0; d < dim; d++) {
        const float* row = &keys[(size_t)d * PIECE + base];
        F k[VECTORS];
        for (int j = 0; j < VECTORS; j++) k[j] = load(row + j * W);
        for (int r = 0; r < ROWS; r++) {
          F x = splat(q[r][d]);
          for (int j = 0; j < VECTORS; j++) acc[r][j] += x * k[j];
        }
      }
      for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < VECTORS; j++) store(&logits[r][base + j * W], acc[r][j] * scale);
    }
  }

  void gather(const float (*weights)[PIECE], float (*out)[DIM_MAX]) const {
    for (int base = 0; base < dim; base += VECTORS * W) {
      int vectors = std::min(VECTORS, (dim - base) / W);
      if (vectors == VECTORS)
        gather_columns<VECTORS>(base, weights, out);
      else
        for (int j = 0; j < vectors; j++) gather_columns<1>(base + j * W, weights, out);
    }
  }

  template <int N>
  void gather_columns(int base, const float (*weights)[PIECE], float (*out)[DIM_MAX]) const {
    F acc[ROWS][N] = {};
    for (int key = 0; key < count; key++) {
      const float* row = &values[(size_t)key * dim + base];
      F v[N];
      for (int j = 0; j < N; j++) v[j] = load(row + j * W);
      for (int r = 0; r < ROWS; r++) {
        F x = splat(weights[r][key]);
        for (int j = 0; j < N; j++) acc[r][j] += x * v[j];
      }
    }
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) store(&out[r][base + j * W], acc[r][j]);
  }
};

struct Job {
  const LsAttend& a;
  std::vector<Piece> pieces;
  int group;

  explicit Job(const LsAttend& call) : a(call), group(call.heads / call.kv_heads) {
    for (int b = 0; b < a.block_count; b++)
      for (int first = 0; first < a.blocks[b].length; first += PIECE)
        pieces.push_back({&a.blocks[b], first, std::min(PIECE, a.blocks[b].length - first)});
  }

  // Row `packed` of a KV head is query head packed % group of row packed / group.
  int64_t query(int head, int packed) const {
    return (int64_t)(packed / group) * a.heads + head * group + packed % group;
  }

  int visible(const Piece& piece, int packed) const {
    return std::clamp(a.positions[packed / group] - piece.block->position - piece.first + 1, 0, piece.count);
  }

  // Whether any of the packed rows [lo, hi) may see a key of the piece. Several sequences may share it: positions need not rise.
  bool seen(const Piece& piece, int lo, int hi) const {
    for (int packed = lo; packed < hi; packed++)
      if (visible(piece, packed) > 0) return true;
    return false;
  }

  // Partials of packed rows [first, first + rows) of one KV head over one piece. Gives false if none of them may see it.
  bool partial(const Piece& piece, int head, int first, int rows, float* logits, Partial* partials, float* const* values) const {
    Tile tile;
    tile.rows = rows;
    bool any = false;
    for (int r = 0; r < rows; r++) {
      tile.q[r] = a.q + query(head, first + r) * a.dim;
      tile.logits[r] = logits + r * (PIECE + W);
      tile.visible[r] = visible(piece, first + r);
      any |= tile.visible[r] > 0;
    }
    if (!any) return false;
    read_piece(piece, head, a.dim, a.scale, tile, partials, values);
    return true;
  }

  // Threads share out (KV head, stripe of rows); a piece is unpacked once for a stripe.
  void many_rows() const {
    int packed = a.rows * group, stripes = (packed + STRIPE - 1) / STRIPE;
#pragma omp parallel num_threads(a.threads)
    {
      Unpacked piece_values(a.dim);
      std::vector<float> sums((size_t)STRIPE * a.dim);
#pragma omp for collapse(2) schedule(dynamic, 1)
      for (int head = 0; head < a.kv_heads; head++)
        for (int s = 0; s < stripes; s++) stripe(head, s * STRIPE, std::min(packed, (s + 1) * STRIPE), piece_values, sums.data());
    }
  }

  void stripe(int head, int begin, int end, Unpacked& unpacked, float* sums) const {
    alignas(64) float logits[ROWS][PIECE];
    alignas(64) float part_values[ROWS][DIM_MAX];
    Partial totals[STRIPE];
    std::fill_n(sums, (size_t)(end - begin) * a.dim, 0.0f);
    for (const Piece& piece : pieces) {
      int lo = std::max(begin, piece.block->row_begin * group), hi = std::min(end, piece.block->row_end * group);
      if (lo >= hi || !seen(piece, lo, hi)) continue;
      unpacked.take(piece, head);
      for (int first = lo; first < hi; first += ROWS) {
        int rows = std::min(ROWS, hi - first);
        const float* q[ROWS];
        for (int r = 0; r < ROWS; r++) q[r] = a.q + query(head, first + std::min(r, rows - 1)) * a.dim;
        unpacked.score(q, a.scale, logits);
        Partial parts[ROWS];
        for (int r = 0; r < rows; r++) parts[r] = weigh(logits[r], visible(piece, first + r), piece.count);
        unpacked.gather(logits, part_values);
        for (int r = 0; r < rows; r++) {
          int at = first + r - begin;
          merge(totals[at], sums + (size_t)at * a.dim, parts[r], part_values[r], a.dim);
        }
      }
    }
    for (int p = begin; p < end; p++) {
      int64_t at = query(head, p);
      float* from = sums + (size_t)(p - begin) * a.dim;
      normalise(totals[p - begin], from, a.dim, a.lse ? a.lse + at : nullptr);
      std::copy_n(from, a.dim, a.out + at * a.dim);
    }
  }

  void few_rows() const {
    int packed = a.rows * group, count = (int)pieces.size();
    thread_local std::vector<float> values;
    thread_local std::vector<Partial> partials;
    size_t needed = (size_t)a.kv_heads * count * packed;
    if (values.size() < needed * a.dim) values.resize(needed * a.dim);
    partials.assign(needed, Partial());
    float* all_values = values.data();
    Partial* all_partials = partials.data();
#pragma omp parallel num_threads(a.threads)
    {
      alignas(64) float logits[TILE * (PIECE + W)];
#pragma omp for collapse(2) schedule(dynamic, 1)
      for (int head = 0; head < a.kv_heads; head++)
        for (int i = 0; i < count; i++) {
          const Piece& piece = pieces[i];
          size_t base = ((size_t)head * count + i) * packed;
          for (int lo = piece.block->row_begin * group; lo < piece.block->row_end * group; lo += TILE) {
            int rows = std::min(TILE, piece.block->row_end * group - lo);
            float* at[TILE];
            for (int r = 0; r < rows; r++) at[r] = all_values + (base + lo + r) * a.dim;
            partial(piece, head, lo, rows, logits, all_partials + base + lo, at);
          }
        }
#pragma omp for collapse(2) schedule(static)
      for (int head = 0; head < a.kv_heads; head++)
        for (int p = 0; p < packed; p++) {
          int64_t at = query(head, p);
          float* out = a.out + at * a.dim;
          std::fill_n(out, a.dim, 0.0f);
          Partial total;
          for (int i = 0; i < count; i++) {
            size_t from = ((size_t)head * count + i) * packed + p;
            merge(total, out, all_partials[from], all_values + from * a.dim, a.dim);
          }
          normalise(total, out, a.dim, a.lse ? a.lse + at : nullptr);
        }
    }
  }

  // A second reading of the keys for the chosen rows, now that their denominators are known.
  void add_scores(const float* lse) const {
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(a.threads)
    for (int head = 0; head < a.kv_heads; head++)
      for (int i = 0; i < (int)pieces.size(); i++) {
        const Piece& piece = pieces[i];
        const LsBlock& b = *piece.block;
        alignas(64) float logits[TILE * (PIECE + W)];
        float* sums = a.scores + head * a.keys + b.key_offset + piece.first;
        int begin = std::max(a.score_begin, b.row_begin) * group, end = std::min(a.score_end, b.row_end) * group;
        for (int lo = begin; lo < end; lo += TILE) {
          Tile tile;
          tile.rows = std::min(TILE, end - lo);
          for (int r = 0; r < tile.rows; r++) {
            tile.q[r] = a.q + query(head, lo + r) * a.dim;
            tile.logits[r] = logits + r * (PIECE + W);
          }
          read_piece(piece, head, a.dim, a.scale, tile, nullptr, nullptr);
          for (int r = 0; r < tile.rows; r++) {
            float denominator = lse[query(head, lo + r)];
            int seen = visible(piece, lo + r);
            for (int key = 0; key < seen; key++) sums[key] += std::exp(tile.logits[r][key] - denominator);
          }
        }
      }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(attend_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsAttend* call) {
  LsAttend a = *call;
  std::vector<float> own_lse;
  if (a.scores && !a.lse) {
    own_lse.resize((size_t)a.rows * a.heads);
    a.lse = own_lse.data();
  }
  Job job(a);
  if (a.rows > FEW)
    job.many_rows();
  else
    job.few_rows();
  if (a.scores) job.add_scores(a.lse);
}
