// Codes of vectors by the signs of their products with random directions, and how likely two vectors meet in two tables.
//
// A product is one chain of multiply-adds over the coordinates, whatever stands beside it: keys and queries get the same signs.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.h"

namespace {

constexpr int PANEL = 16;        // directions that stand together
constexpr int TABLES_MAX = 1024;
constexpr int AT_A_TIME = W / 2;  // vectors whose sums stay in registers beside a panel's

struct Codes {
  int bits, tables, dim;

  int panels() const { return (bits * tables + PANEL - 1) / PANEL; }
  int words() const { return panels() + 1; }  // 16 signs each; the last one is there to be read
  int buckets() const { return 1 << bits; }

  int of(const uint16_t* signs, int table) const {
    int at = table * bits;
    uint32_t both = signs[at / PANEL] | (uint32_t)signs[at / PANEL + 1] << PANEL;
    return both >> (at % PANEL) & (buckets() - 1);
  }

  // The signs of one panel's products with vectors [0, count) at x, into word `panel` of each vector's signs.
  void sign(const float* x, int count, const float* panels, int panel, uint16_t* signs) const {
    const float* directions = panels + (size_t)panel * dim * PANEL;
    for (int first = 0; first < count; first += AT_A_TIME) {
      const float* rows[AT_A_TIME];
      for (int r = 0; r < AT_A_TIME; r++) rows[r] = x + (size_t)std::min(first + r, count - 1) * dim;
      F acc[AT_A_TIME][PANEL / W] = {};
      for (int d = 0; d < dim; d++)
        for (int j = 0; j < PANEL / W; j++) {
          F w = load(directions + d * PANEL + j * W);
          for (int r = 0; r < AT_A_TIME; r++) acc[r][j] = fused(splat(rows[r][d]), w, acc[r][j]);
        }
      for (int r = 0; r < AT_A_TIME && first + r < count; r++) {
        uint32_t word = 0;
        for (int j = 0; j < PANEL / W; j++) word |= bits_of(acc[r][j] < F{}) << (j * W);
        signs[(size_t)(first + r) * words() + panel] = (uint16_t)word;
      }
    }
  }
};

inline F root(F x) {
#if defined(__AVX512F__)
  return (F)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
  return (F)_mm256_sqrt_ps((__m256)x);
#else
  for (int lane = 0; lane < W; lane++) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}

inline F least(F x, float y) { return x < splat(y) ? x : splat(y); }
inline F most(F x, float y) { return x > splat(y) ? x : splat(y); }

// ln(1 - x) for x in [0, 1]: below -87 where x is 1. Near 0 its relative error is as small as that of x.
inline F log_of_rest(F x) {
  F z = splat(0.0f) - least(x, 0.25f), p = splat(-0.1f);
  for (float c : {0.1111111f, -0.125f, 0.14285714f, -0.16666667f, 0.2f, -0.25f, 0.33333333f, -0.5f}) p = p * z + c;
  return x < splat(0.25f) ? p * z * z + z : log_of(1.0f - x);
}

// ln u, u the probability that two vectors meet in at least two of the tables; see `kernels.lsh.log_inclusion`.
struct Inclusion {
  float bits, tables, log_pairs;

  explicit Inclusion(const Codes& codes) : bits(codes.bits), tables(codes.tables) {
    log_pairs = (float)std::log(0.5 * codes.tables * (codes.tables - 1));
  }

  F log_u(F cos) const {
    F log_meeting = log_of(most(agreement(cos), 1e-6f)) * bits, meeting = exp_nonpositive(least(log_meeting, 0));
    F others = meeting * (tables - 1), rare = log_meeting * 2.0f + log_pairs, log_rest = log_of_rest(meeting);
    F some = rare + log_rest * (tables - 2) + log_of(series(meeting) * 0.5f) + 0.69314718f;
    F u = 1.0f - exp_nonpositive(log_rest * (tables - 1)) * (1.0f + others);
    F result = others < splat(1.0f) ? some : log_of(most(u, 0.25f));
    return least(others < splat(1e-3f) ? rare : result, 0);
  }

  // Of one bit: 1 - arccos / pi. Abramowitz and Stegun 4.4.46.
  static F agreement(F cos) {
    F x = least(cos < F{} ? splat(0.0f) - cos : cos, 1), p = splat(-0.0012624911f);
    for (float c : {0.0066700901f, -0.0170881256f, 0.0308918810f, -0.0501743046f, 0.0889789874f, -0.2145988016f, 1.5707963050f}) p = p * x + c;
    F angle = root(1.0f - x) * p * 0.318309886f;
    return cos < F{} ? angle : 1.0f - angle;
  }

  // u = pairs · meeting² · (1 - meeting)^(tables - 2) · this, where few others meet: a binomial sum over how many do, all of one sign.
  F series(F meeting) const {
    F odds = meeting / most(1.0f - meeting, 1e-6f), term = splat(1.0f), total = term;
    for (int more = 1; more < 12; more++) {
      term *= odds * (std::max(tables - 1 - more, 0.0f) / (more + 2));
      total += term;
    }
    return total;
  }
};

}  // namespace
