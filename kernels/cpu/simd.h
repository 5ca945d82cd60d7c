// Vectors of floats, as wide as the instruction set this file is compiled for (4, 8 or 16 lanes).
//
// Written with the vector extensions that GCC and Clang share, so that one source gives SSE2, AVX2, AVX-512 and NEON code;
// only the horizontal reduction has hand-picked shuffles. All functions are pure and inline.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float F __attribute__((vector_size(W * 4)));
typedef int32_t I __attribute__((vector_size(W * 4)));
typedef uint32_t U __attribute__((vector_size(W * 4)));
typedef uint16_t H __attribute__((vector_size(W * 2)));

inline F splat(float x) { return x - F{}; }

inline F load(const float* p) {
  F v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float* p, F v) { std::memcpy(p, &v, sizeof v); }

// bf16 is the upper half of an IEEE single.
inline F load(const uint16_t* p) {
  H h;
  std::memcpy(&h, p, sizeof h);
  U u = __builtin_convertvector(h, U) << 16;
  F v;
  std::memcpy(&v, &u, sizeof v);
  return v;
}

// a * b + c, rounded once where the processor can.
inline F fused(F a, F b, F c) {
#if defined(__AVX512F__)
  return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// To the nearest bf16, ties to even; finite numbers only.
inline F rounded(F x) {
  U u;
  std::memcpy(&u, &x, sizeof u);
  u = (u + ((u >> 16) & 1) + 0x7FFF) & 0xFFFF0000u;
  std::memcpy(&x, &u, sizeof x);
  return x;
}

// e^x for x <= 0, relative error below 2e-7; 0 below -87. Range reduction by ln 2 in two parts, then a polynomial of degree 6.
inline F exp_nonpositive(F x) {
#if defined(__AVX512F__)
  __m512 v = (__m512)x;
  __mmask16 seen = _mm512_cmp_ps_mask(v, _mm512_set1_ps(-87.0f), _CMP_GE_OQ);
  __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(v, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), v);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.3981999507e-3f);
  for (float c : {8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f, 1.0f, 1.0f})
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
  return (F)_mm512_maskz_scalef_ps(seen, p, n);
#else
  const F low = splat(-87.0f);
  I small = x < low;
  x = small ? low : x;
  F n = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the addition rounds to an integer
  n -= 12582912.0f;
  F r = x - n * 0.693359375f + n * 2.12194440e-4f;
  F p = splat(1.3981999507e-3f);
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  I e = (__builtin_convertvector(n, I) + 127) << 23;
  F scale;
  std::memcpy(&scale, &e, sizeof scale);
  F y = p * scale;
  return small ? F{} : y;
#endif
}

#if defined(__AVX512F__)
// e^x for x <= 0, relative error below 8e-5: enough for weights that are rounded to bf16.
inline F exp_nonpositive_near(F x) {
  __m512 v = (__m512)x;
  __mmask16 seen = _mm512_cmp_ps_mask(v, _mm512_set1_ps(-87.0f), _CMP_GE_OQ);
  __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(v, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.69314718f), v);
  __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(1.6566805e-1f), _mm512_set1_ps(5.0496324e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.00016422f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.9992807e-1f));
  return (F)_mm512_maskz_scalef_ps(seen, p, n);
}
#endif

// tanh x, relative error below 4e-7: by e^(-2|x|), near 0 by an odd polynomial of degree 11 (least relative error on |x| < 0.625).
inline F tanh_of(F x) {
  F magnitude = x < F{} ? -x : x;
  F e = exp_nonpositive(magnitude * -2.0f);
  F large = (1.0f - e) / (1.0f + e);
  large = x < F{} ? -large : large;
  F square = x * x;
  F p = splat(-5.7049864e-3f);
  p = p * square + 2.0639086e-2f;
  p = p * square + -5.3739715e-2f;
  p = p * square + 1.33314416e-1f;
  p = p * square + -3.33332807e-1f;
  F small = p * square * x + x;
  return magnitude < splat(0.625f) ? small : large;
}

// W vectors of W numbers, rows for columns.
inline void transpose(F* rows) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  __m256 pairs[W], fours[W];
  for (int i = 0; i < W; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < W; i += 4)
    for (int j = 0; j < 2; j++) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + 2 + j], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + 2 + j], 0xEE);
    }
  for (int i = 0; i < 4; i++) {
    rows[i] = (F)_mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = (F)_mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
#else
  float block[W][W];
  for (int i = 0; i < W; i++) store(block[i], rows[i]);
  for (int i = 0; i < W; i++)
    for (int j = 0; j < W; j++) rows[i][j] = block[j][i];
#endif
}

// ln x for x > 0, absolute error below 1e-6 where x is in (0, 1].
inline F log_of(F x) {
  U bits;
  std::memcpy(&bits, &x, sizeof bits);
  I exponent = (I)(bits >> 23) - 126;
  bits = (bits & 0x007FFFFFu) | 0x3F000000u;
  F m;
  std::memcpy(&m, &bits, sizeof m);  // [0.5, 1)
  I low = m < splat(0.70710678f);
  m = low ? m + m : m;
  F e = __builtin_convertvector(exponent + low, F);
  F z = m - 1.0f;
  F p = splat(7.0376836292e-2f);
  p = p * z - 1.1514610310e-1f;
  p = p * z + 1.1676998740e-1f;
  p = p * z - 1.2420140846e-1f;
  p = p * z + 1.4249322787e-1f;
  p = p * z - 1.6668057665e-1f;
  p = p * z + 2.0000714765e-1f;
  p = p * z - 2.4999993993e-1f;
  p = p * z + 3.3333331174e-1f;
  F square = z * z;
  return z + (p * z * square - 0.5f * square) + e * 0.69314718f;
}

// A bit for each lane, from a comparison.
inline uint32_t bits_of(I truths) {
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

inline float sum(F v) {
  float total[W];
  store(total, v);
  for (int width = W / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) total[i] += total[i + width];
  return total[0];
}

// The sums over the lanes of four vectors.
inline void sum4(F a, F b, F c, F d, float* out) {
#if defined(__AVX512F__)
  __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  __m512d lo = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  __m512d hi = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  __m512 t = _mm512_add_ps(_mm512_castpd_ps(lo), _mm512_castpd_ps(hi));
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(t), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(t), 1)));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
#elif defined(__AVX2__)
  // Blends run where additions and products leave room; horizontal additions don't.
  auto pairs = [](F x, F y) {
    __m256 crossed = _mm256_permute_ps(_mm256_blend_ps(x, y, 0x55), 0xB1);
    return _mm256_add_ps(_mm256_blend_ps(x, y, 0xAA), crossed);
  };
  __m256 ab = pairs(a, b), cd = pairs(c, d);
  __m256 t = _mm256_add_ps(_mm256_blend_ps(ab, cd, 0xCC), _mm256_shuffle_ps(ab, cd, 0x4E));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1)));
#else
  out[0] = sum(a);
  out[1] = sum(b);
  out[2] = sum(c);
  out[3] = sum(d);
#endif
}

}  // namespace
