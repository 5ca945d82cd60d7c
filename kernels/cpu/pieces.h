// Pieces of KV blocks, and partial results over them: what both ways of reading (few rows, many rows) share.
#pragma once

#include <algorithm>
#include <cmath>

#include "attention.h"
#include "simd.h"

namespace {

constexpr int PIECE = 256;  // keys of one partial result: 32 KiB of bf16 keys at dim 64, so K and V of a piece stay in L2
constexpr int DIM_MAX = 256;
constexpr float NOTHING = -INFINITY;

struct Partial {
  float max = NOTHING;
  float sum = 0;
};

struct Piece {
  const LsBlock* block;
  int first, count;  // keys of the block
};

// The keys of a piece that a row, or any of some rows, may see: [begin, end).
struct Span {
  int begin, end;

  bool empty() const { return begin >= end; }

  void widen(Span other) {
    if (other.empty()) return;
    *this = empty() ? other : Span{std::min(begin, other.begin), std::max(end, other.end)};
  }
};

// Have a row on its way. Inlined early: GCC takes a function that only asks for memory for one without effect, and drops its calls.
template <typename T>
__attribute__((always_inline)) inline void ask_for(const T* row, int dim) {
  for (int d = 0; d < dim; d += 64 / (int)sizeof(T)) __builtin_prefetch(row + d, 0, 2);
}

inline int down(int n, int step) { return n / step * step; }
inline int up(int n, int step) { return down(n + step - 1, step); }

// Logits of the keys of `span` are capped; a few beside them too.
inline void cap(float* logits, Span span, float softcap) {
  float inverse = 1.0f / softcap;
  for (int i = down(span.begin, W); i < span.end; i += W) store(logits + i, tanh_of(load(logits + i) * inverse) * softcap);
}

// Logits of `own`, the keys the row may see, become weights e^(logit - max), by EXP; the others of `any` get none.
template <F (*EXP)(F) = exp_nonpositive>
Partial weigh(float* logits, Span own, Span any) {
  Partial result;
  if (own.empty()) {
    std::fill(logits + any.begin, logits + any.end, 0.0f);
    return result;
  }
  int first = down(own.begin, W), last = up(own.end, W);
  std::fill(logits + std::min(any.begin, first), logits + first, 0.0f);
  std::fill(logits + first, logits + own.begin, NOTHING);
  std::fill(logits + own.end, logits + last, NOTHING);
  if (last < any.end) std::fill(logits + last, logits + any.end, 0.0f);
  F top = splat(NOTHING);
  for (int i = first; i < last; i += W) {
    F v = load(logits + i);
    top = top > v ? top : v;
  }
  float lanes[W];
  store(lanes, top);
  result.max = *std::max_element(lanes, lanes + W);
  F total = {};
  for (int i = first; i < last; i += W) {
    F w = EXP(load(logits + i) - result.max);
    store(logits + i, w);
    total += w;
  }
  result.sum = sum(total);
  return result;
}

// (total, out) absorbs (part, values); `out` stays unnormalised.
void merge(Partial& total, float* out, const Partial& part, const float* values, int dim) {
  if (part.sum == 0) return;
  float top = std::max(total.max, part.max);
  float lower = std::exp(std::min(total.max, part.max) - top);
  float old_scale = total.sum == 0 ? 0.0f : part.max > total.max ? lower : 1.0f;
  float new_scale = part.max > total.max ? 1.0f : lower;
  for (int d = 0; d < dim; d += W) store(out + d, load(out + d) * old_scale + load(values + d) * new_scale);
  total.sum = total.sum * old_scale + part.sum * new_scale;
  total.max = top;
}

void normalise(const Partial& total, float* out, int dim, float* lse) {
  float inverse = total.sum == 0 ? 0.0f : 1.0f / total.sum;
  for (int d = 0; d < dim; d += W) store(out + d, load(out + d) * inverse);
  if (lse) *lse = total.sum == 0 ? NOTHING : total.max + std::log(total.sum);
}

}  // namespace
