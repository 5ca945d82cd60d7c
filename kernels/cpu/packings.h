// Layouts of weights: each unpacks 32 numbers of a row into registers, rounded to bf16, as `kernels/packings.py` defines them.
//
// A sub-block of 32 numbers that share scale and offset has at most 32 different values: on AVX-512 those are worked out once, in one or
// two registers, and each number is a look-up by its code.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.h"

namespace {

constexpr int RUN = 32;         // numbers unpacked at once
constexpr int VECTORS = RUN / W;

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

inline float half(const uint8_t* p) {
#if defined(__AVX2__)
  uint16_t h;
  std::memcpy(&h, p, 2);
  return _cvtsh_ss(h);
#else
  uint16_t h;
  std::memcpy(&h, p, 2);
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3FF, bits;
  if (exponent == 0) {
    float value = (float)fraction * 5.9604644775390625e-8f;  // 2^-24
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
#endif
}

// W signed or unsigned bytes as floats. GCC converts bytes one by one where it is left to find the instructions.
inline F floats(const int8_t* p) {
#if defined(__AVX512F__)
  return (F)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
#elif defined(__AVX2__)
  return (F)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
#else
  F out;
  for (int i = 0; i < W; i++) out[i] = (float)p[i];
  return out;
#endif
}

inline F floats(const uint8_t* p) {
#if defined(__AVX512F__)
  return (F)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
#elif defined(__AVX2__)
  return (F)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)));
#else
  F out;
  for (int i = 0; i < W; i++) out[i] = (float)p[i];
  return out;
#endif
}

// Codes of 32 numbers, one a byte, to numbers.
inline void from_codes(const uint8_t* codes, float scale, float offset, F* out) {
  for (int i = 0; i < VECTORS; i++) out[i] = rounded(fused(floats(codes + i * W), splat(scale), splat(offset)));
}

#if defined(__AVX512F__)
inline F ramp() { return F{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

// 16 bytes: low halves are the first 16 codes, high halves the others.
inline void from_nibbles(const uint8_t* nibbles, float scale, float offset, F* out) {
  __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)nibbles));
  __m512 table = (__m512)rounded(fused(ramp(), splat(scale), splat(offset)));
  out[0] = (F)_mm512_permutexvar_ps(codes, table);
  out[1] = (F)_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table);
}

// The same with a fifth bit of each code: bit i of `high` belongs to code i.
inline void from_nibbles(const uint8_t* nibbles, uint32_t high, float scale, float offset, F* out) {
  __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)nibbles));
  __m512i lower = _mm512_and_si512(codes, _mm512_set1_epi32(15)), upper = _mm512_srli_epi32(codes, 4);
  lower = _mm512_mask_or_epi32(lower, (__mmask16)high, lower, _mm512_set1_epi32(16));
  upper = _mm512_mask_or_epi32(upper, (__mmask16)(high >> 16), upper, _mm512_set1_epi32(16));
  __m512 low_table = (__m512)rounded(fused(ramp(), splat(scale), splat(offset)));
  __m512 high_table = (__m512)rounded(fused(ramp() + 16.0f, splat(scale), splat(offset)));
  out[0] = (F)_mm512_permutex2var_ps(low_table, lower, high_table);
  out[1] = (F)_mm512_permutex2var_ps(low_table, upper, high_table);
}
#else
inline void from_nibbles(const uint8_t* nibbles, float scale, float offset, F* out) {
  uint8_t codes[RUN];
  for (int i = 0; i < 16; i++) codes[i] = nibbles[i] & 15, codes[16 + i] = nibbles[i] >> 4;
  from_codes(codes, scale, offset, out);
}

inline void from_nibbles(const uint8_t* nibbles, uint32_t high, float scale, float offset, F* out) {
  uint8_t codes[RUN];
  for (int i = 0; i < 16; i++) codes[i] = nibbles[i] & 15, codes[16 + i] = nibbles[i] >> 4;
  for (int i = 0; i < RUN; i++) codes[i] |= (high >> i & 1) << 4;
  from_codes(codes, scale, offset, out);
}
#endif

// 32 bytes of which one half each (shift 0 or 4) is a code.
inline void from_halves(const uint8_t* bytes, int shift, float scale, float offset, F* out) {
#if defined(__AVX512F__)
  __m512 table = (__m512)rounded(fused(ramp(), splat(scale), splat(offset)));
  for (int i = 0; i < 2; i++) {
    __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(bytes + 16 * i)));
    out[i] = (F)_mm512_permutexvar_ps(_mm512_srl_epi32(codes, _mm_cvtsi32_si128(shift)), table);
  }
#else
  uint8_t codes[RUN];
  for (int i = 0; i < RUN; i++) codes[i] = bytes[i] >> shift & 15;
  from_codes(codes, scale, offset, out);
#endif
}

// Scale and offset of the `sub`-th of eight sub-blocks, six bits each, in 12 bytes.
inline void six_bits(const uint8_t* s, int sub, float d, float m, float* scale, float* offset) {
  int scale_code, offset_code;
  if (sub < 4) {
    scale_code = s[sub] & 63;
    offset_code = s[sub + 4] & 63;
  } else {
    scale_code = (s[sub + 4] & 15) | (s[sub - 4] >> 6 << 4);
    offset_code = (s[sub + 4] >> 4) | (s[sub] >> 6 << 4);
  }
  *scale = d * (float)scale_code;
  *offset = -(m * (float)offset_code);
}

// Each layout: BLOCK numbers in BYTES bytes; unpack gives the `sub`-th run of 32 in a block.

struct Bf16 {
  static constexpr int BLOCK = 32, BYTES = 64;
  static void unpack(const uint8_t* b, int, F* out) {
    for (int i = 0; i < VECTORS; i++) out[i] = load((const uint16_t*)b + i * W);
  }
};

struct F32 {
  static constexpr int BLOCK = 32, BYTES = 128;
  static void unpack(const uint8_t* b, int, F* out) {
    for (int i = 0; i < VECTORS; i++) out[i] = load((const float*)b + i * W);
  }
};

struct Q8_0 {
  static constexpr int BLOCK = 32, BYTES = 34;
  static void unpack(const uint8_t* b, int, F* out) {
    float d = half(b);
    for (int i = 0; i < VECTORS; i++) out[i] = rounded(floats((const int8_t*)b + 2 + i * W) * d);
  }
};

struct Q4_0 {
  static constexpr int BLOCK = 32, BYTES = 18;
  static void unpack(const uint8_t* b, int, F* out) {
    float d = half(b);
    from_nibbles(b + 2, d, -8 * d, out);
  }
};

struct Q4_1 {
  static constexpr int BLOCK = 32, BYTES = 20;
  static void unpack(const uint8_t* b, int, F* out) { from_nibbles(b + 4, half(b), half(b + 2), out); }
};

struct Q5_0 {
  static constexpr int BLOCK = 32, BYTES = 22;
  static void unpack(const uint8_t* b, int, F* out) {
    uint32_t high;
    std::memcpy(&high, b + 2, 4);
    float d = half(b);
    from_nibbles(b + 6, high, d, -16 * d, out);
  }
};

struct Q5_1 {
  static constexpr int BLOCK = 32, BYTES = 24;
  static void unpack(const uint8_t* b, int, F* out) {
    uint32_t high;
    std::memcpy(&high, b + 4, 4);
    from_nibbles(b + 8, high, half(b), half(b + 2), out);
  }
};

struct Q4_K {
  static constexpr int BLOCK = 256, BYTES = 144;
  static void unpack(const uint8_t* b, int sub, F* out) {
    float scale, offset;
    six_bits(b + 4, sub, half(b), half(b + 2), &scale, &offset);
    from_halves(b + 16 + sub / 2 * 32, sub % 2 * 4, scale, offset, out);
  }
};

struct Q5_K {
  static constexpr int BLOCK = 256, BYTES = 176;
  static void unpack(const uint8_t* b, int sub, F* out) {
    float scale, offset;
    six_bits(b + 4, sub, half(b), half(b + 2), &scale, &offset);
    const uint8_t *low = b + 48 + sub / 2 * 32, *high = b + 16;
    uint8_t codes[RUN];
    for (int i = 0; i < RUN; i++) codes[i] = (low[i] >> sub % 2 * 4 & 15) | (high[i] >> sub & 1) << 4;
    from_codes(codes, scale, offset, out);
  }
};

struct Q6_K {
  static constexpr int BLOCK = 256, BYTES = 210;
  static void unpack(const uint8_t* b, int sub, F* out) {
    int part = sub / 4, quarter = sub % 4;
    const uint8_t *low = b + part * 64 + quarter % 2 * 32, *high = b + 128 + part * 32;
    const int8_t* scales = (const int8_t*)b + 192 + sub * 2;
    float d = half(b + 208);
    uint8_t codes[RUN];
    for (int i = 0; i < RUN; i++) codes[i] = (low[i] >> quarter / 2 * 4 & 15) | (high[i] >> 2 * quarter & 3) << 4;
    for (int i = 0; i < VECTORS; i++) out[i] = rounded((floats(codes + i * W) - 32.0f) * (d * (float)scales[i * W / 16]));
  }
};

// Calls `then(Packing())` for the layout with this code. Codes are those of kernels/packings.py.
template <class Then>
void with_packing(int code, Then then) {
  switch (code) {
    case 0: return then(Bf16());
    case 1: return then(F32());
    case 2: return then(Q8_0());
    case 3: return then(Q4_0());
    case 4: return then(Q4_1());
    case 5: return then(Q5_0());
    case 6: return then(Q5_1());
    case 7: return then(Q4_K());
    case 8: return then(Q5_K());
    case 9: return then(Q6_K());
  }
}

}  // namespace
