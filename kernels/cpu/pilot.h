// What a pilot, a small draw, tells of the draw that is to come; `kernels/budgets.py` says what it means and why.
#pragma once

#include <vector>

#include "choosing.h"

namespace {

// What one query head drew of one chunk.
struct PilotKeys {
  struct Key {
    int32_t key;
    float added;   // -ln of its probability
    float weight;  // as a share of the largest in the chunk
  };
  std::vector<Key> keys;

  void keep(const Chosen& chosen, int head, const float* weights) {
    for (int i = 0; i < chosen.count; i++)
      if (chosen.added[head][i] != NOTHING) keys.push_back({chosen.keys[i], chosen.added[head][i], weights[i]});
  }
};

// The pilot of one row and query head: its keys' probabilities, and what each adds to the variance, its probability aside.
class Pilot {
 public:
  void clear() {
    probabilities.clear();
    shares.clear();
  }

  // scale: makes the chunk's weights those of softmax; out: what the pilot estimates.
  void add(const Chunk& chunk, int head, const PilotKeys& drawn, float scale, const float* out, int dim) {
    for (const PilotKeys::Key& each : drawn.keys) {
      float weight = each.weight * scale;
      probabilities.push_back(std::exp(-each.added));
      shares.push_back(weight * weight * square_away(chunk, head, each.key, out, dim));
    }
  }

  // The threshold that keeps the promise, from the pilot's own.
  float lowered(float threshold, const LsBudgeted& promise, const float* out, int dim) const {
    double square = 0;
    for (int d = 0; d < dim; d++) square += (double)out[d] * out[d];
    double t = lower(square * promise.tolerance * promise.tolerance, promise);
    return t == 0 ? EVERYTHING : threshold + (float)std::log(t);
  }

 private:
  static constexpr int STEPS = 64;
  std::vector<float> probabilities, shares;

  // What the weight at the threshold is to be multiplied by for the variance to be at most `target`: 1 or less, 0 for all keys.
  double lower(double target, const LsBudgeted& promise) const {
    double t = 1;
    for (int step = 0; step < STEPS; step++) {
      double slope = 0, fixed = 0;
      for (size_t i = 0; i < shares.size(); i++)
        if (probabilities[i] < t) {
          slope += shares[i];
          fixed += (double)shares[i] * probabilities[i];
        }
      if (t * slope - fixed <= target) break;
      t = (target + fixed) / slope;
    }
    double drawn = count(t);
    if (drawn > promise.everything) return 0;
    return drawn > promise.most ? at_most(promise.most) : t;
  }

  // Keys that are drawn on the average.
  double count(double t) const {
    double sum = 0;
    for (float u : probabilities) sum += std::min(1.0 / u, 1 / t);
    return sum;
  }

  // Where so many are drawn, or 1.
  double at_most(double keys) const {
    double inverse = 1;
    for (int step = 0; step < STEPS; step++) {
      double less = keys - count(1 / inverse), slope = 0;
      for (float u : probabilities) slope += u < 1 / inverse;
      if (less <= 0 || slope == 0) break;
      inverse += less / slope;
    }
    return 1 / inverse;
  }

  static float square_away(const Chunk& chunk, int head, int key, const float* out, int dim) {
    const LsBlock& b = chunk.block->kv;
    int64_t at = head * b.head_stride + (chunk.first + key) * b.token_stride;
    return b.dtype == 0 ? square_away(static_cast<const uint16_t*>(b.v) + at, out, dim)
                        : square_away(static_cast<const float*>(b.v) + at, out, dim);
  }

  template <typename T>
  static float square_away(const T* v, const float* out, int dim) {
    F total = {};
    for (int d = 0; d < dim; d += W) {
      F off = load(v + d) - load(out + d);
      total += off * off;
    }
    return sum(total);
  }
};

}  // namespace
