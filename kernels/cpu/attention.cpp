// Dense attention of packed query rows over a list of KV blocks, fp32 throughout.
//
// Keys are taken in pieces of at most STRETCH, or PIECE where rows are many. For one row and one piece the partial result is (maximum,
// sum, weighed values); partials are merged in the order of the blocks. Method: online softmax (Milakov and Gimelshein 2018,
// arXiv:1805.02867), split over keys as in Flash-Decoding.
//
// Few rows (decode, verification): threads share out the pieces, each read once in its own form. Many rows (prefill): threads share
// out the rows, and pieces are unpacked for them. The work inside a piece and the order of merging are the same for a row whatever
// rows stand beside it and however many threads run: within one of the two ways a row's bits never depend on its neighbours.
#include "attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "few_rows.h"
#include "many_rows.h"
#include "many_rows_bf16.h"

namespace {

constexpr int FEW = 16;  // up to this many rows, threads share out the keys; the threshold must not depend on the machine

struct Job {
  const LsAttend& a;
  std::vector<Piece> pieces;
  int group;

  // Pieces that no row may see are left out: all but a few of a long chain where there is a window. What is left is cut at the same
  // keys whatever rows read.
  Job(const LsAttend& call, int length) : a(call), group(call.heads / call.kv_heads) {
    for (int b = 0; b < a.block_count; b++) {
      const LsBlock& block = a.blocks[b];
      if (block.row_begin >= block.row_end) continue;
      auto [lowest, highest] = std::minmax_element(a.positions + block.row_begin, a.positions + block.row_end);
      for (int first = 0; first < block.length; first += length) {
        int count = std::min(length, block.length - first), position = block.position + first;
        if (position > *highest || (a.window && position + count <= *lowest - a.window + 1)) continue;
        pieces.push_back({&block, first, count});
      }
    }
  }

  // Row `packed` of a KV head is query head packed % group of row packed / group.
  int64_t query(int head, int packed) const {
    return (int64_t)(packed / group) * a.heads + head * group + packed % group;
  }

  Span visible(const Piece& piece, int packed) const {
    int own = a.positions[packed / group] - piece.block->position - piece.first;
    return {a.window ? std::clamp(own - a.window + 1, 0, piece.count) : 0, std::clamp(own + 1, 0, piece.count)};
  }

  // Keys of the piece that any of the packed rows [lo, hi) may see. Several sequences may share it: positions need not rise.
  Span seen(const Piece& piece, int lo, int hi) const {
    Span any = {0, 0};
    for (int packed = lo; packed < hi; packed++) any.widen(visible(piece, packed));
    return any;
  }

  // Packed rows [first, first + rows) of one KV head before a piece.
  Tile tile(const Piece& piece, int head, int first, int rows, float* logits) const {
    Tile tile;
    tile.rows = rows;
    tile.any = seen(piece, first, first + rows);
    for (int r = 0; r < rows; r++) {
      tile.q[r] = a.q + query(head, first + r) * a.dim;
      tile.logits[r] = logits + r * (STRETCH + W);
      tile.own[r] = visible(piece, first + r);
    }
    return tile;
  }

  // Threads share out (KV head, stripe of rows); a piece is unpacked once for a stripe.
  template <class Reader>
  void many_rows() const {
    int packed = a.rows * group;
    int height = std::clamp(packed * a.kv_heads / (4 * a.threads) / ROWS * ROWS, 8 * ROWS, STRIPE);
    int stripes = (packed + height - 1) / height;
#pragma omp parallel num_threads(a.threads)
    {
      Reader piece_values(a.dim);
      std::vector<float> sums((size_t)STRIPE * a.dim);
#pragma omp for collapse(2) schedule(dynamic, 1)
      for (int head = 0; head < a.kv_heads; head++)
        for (int s = 0; s < stripes; s++) stripe(head, s * height, std::min(packed, (s + 1) * height), piece_values, sums.data());
    }
  }

  template <class Reader>
  void stripe(int head, int begin, int end, Reader& unpacked, float* sums) const {
    alignas(64) float logits[ROWS][PIECE];
    alignas(64) float part_values[ROWS][DIM_MAX];
    Partial totals[STRIPE];
    std::fill_n(sums, (size_t)(end - begin) * a.dim, 0.0f);
    for (const Piece& piece : pieces) {
      int lo = std::max(begin, piece.block->row_begin * group), hi = std::min(end, piece.block->row_end * group);
      if (lo >= hi || seen(piece, lo, hi).empty()) continue;
      unpacked.take_keys(piece, head);
      unpacked.take_values(piece, head);
      for (int first = lo; first < hi; first += ROWS) {
        int rows = std::min(ROWS, hi - first);
        Span any = seen(piece, first, first + rows);
        if (any.empty()) continue;
        score(unpacked, head, first, rows, any, logits);
        Partial parts[ROWS];
        for (int r = 0; r < rows; r++) {
          Span own = visible(piece, first + r);
          parts[r] = weigh<Reader::exp>(logits[r], own, any);
        }
        unpacked.gather(logits, any, part_values);
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

  // Logits of `rows` packed rows from `first` on and the keys of `any`, a few more being filled.
  template <class Reader>
  void score(const Reader& unpacked, int head, int first, int rows, Span any, float (*logits)[PIECE]) const {
    const float* q[ROWS];
    for (int r = 0; r < ROWS; r++) q[r] = a.q + query(head, first + std::min(r, rows - 1)) * a.dim;
    unpacked.score(q, a.scale, any, logits);
    if (a.softcap != 0)
      for (int r = 0; r < rows; r++) cap(logits[r], any, a.softcap);
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
      alignas(64) float logits[TILE * (STRETCH + W)];
#pragma omp for collapse(2) schedule(dynamic, 1)
      for (int head = 0; head < a.kv_heads; head++)
        for (int i = 0; i < count; i++) {
          const Piece& piece = pieces[i];
          size_t base = ((size_t)head * count + i) * packed;
          for (int lo = piece.block->row_begin * group; lo < piece.block->row_end * group; lo += TILE) {
            int rows = std::min(TILE, piece.block->row_end * group - lo);
            float* at[TILE];
            for (int r = 0; r < rows; r++) at[r] = all_values + (base + lo + r) * a.dim;
            Tile rows_of_head = tile(piece, head, lo, rows, logits);
            if (!rows_of_head.any.empty()) read_piece(a, piece, head, rows_of_head, all_partials + base + lo, at);
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

  // The packed rows of a piece's block from the first with a score group to the last.
  Span scored(const Piece& piece) const {
    Span rows = {piece.block->row_begin, piece.block->row_end};
    while (!rows.empty() && a.score_of[rows.begin] < 0) rows.begin++;
    while (!rows.empty() && a.score_of[rows.end - 1] < 0) rows.end--;
    return {rows.begin * group, rows.end * group};
  }

  // A packed row's logits of a piece become probabilities, which are added to its score group.
  void add_score(const Piece& piece, int head, int packed, float* logits, Span own) const {
    int to = a.score_of[packed / group];
    if (to < 0) return;
    float* sums = a.scores + ((int64_t)to * a.kv_heads + head) * a.keys + piece.block->key_offset + piece.first;
    F denominator = splat(a.lse[query(head, packed)]);
    for (int i = down(own.begin, W); i < own.end; i += W) {
      F above = load(logits + i) - denominator;
      store(logits + i, exp_nonpositive(above < F{} ? above : F{}));
    }
    for (int key = own.begin; key < own.end; key++) sums[key] += logits[key];
  }

  // A second reading of the keys for the rows with a score group, now that their denominators are known; each way as before.
  void score_few_rows() const {
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(a.threads)
    for (int head = 0; head < a.kv_heads; head++)
      for (int i = 0; i < (int)pieces.size(); i++) {
        const Piece& piece = pieces[i];
        alignas(64) float logits[TILE * (STRETCH + W)];
        for (auto [lo, end] = scored(piece); lo < end; lo += TILE) {
          Tile rows = tile(piece, head, lo, std::min(TILE, end - lo), logits);
          if (rows.any.empty()) continue;
          read_piece(a, piece, head, rows, nullptr, nullptr);
          for (int r = 0; r < rows.rows; r++) add_score(piece, head, lo + r, rows.logits[r], rows.own[r]);
        }
      }
  }

  template <class Reader>
  void score_many_rows() const {
#pragma omp parallel num_threads(a.threads)
    {
      Reader unpacked(a.dim);
      alignas(64) float logits[ROWS][PIECE];
#pragma omp for collapse(2) schedule(dynamic, 1)
      for (int head = 0; head < a.kv_heads; head++)
        for (int i = 0; i < (int)pieces.size(); i++) {
          const Piece& piece = pieces[i];
          auto [begin, end] = scored(piece);
          if (begin < end) unpacked.take_keys(piece, head);
          for (int lo = begin; lo < end; lo += ROWS) {
            int rows = std::min(ROWS, end - lo);
            Span any = seen(piece, lo, lo + rows);
            if (any.empty()) continue;
            score(unpacked, head, lo, rows, any, logits);
            for (int r = 0; r < rows; r++) add_score(piece, head, lo + r, logits[r], visible(piece, lo + r));
          }
        }
    }
  }
};

template <class Reader>
void many_rows(const Job& job) {
  job.many_rows<Reader>();
  if (job.a.scores) job.score_many_rows<Reader>();
}

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
  bool few = a.rows <= FEW;
  Job job(a, few ? STRETCH : PIECE);
  if (few) {
    job.few_rows();
    if (a.scores) job.score_few_rows();
    return;
  }
#if defined(__AVX512BF16__)
  if (a.block_count > 0 && a.blocks[0].dtype == 0) return many_rows<UnpackedBf16>(job);
#endif
  many_rows<Unpacked>(job);
}
