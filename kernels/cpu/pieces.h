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

}  // namespace
