// The C interface of products with a model's matrices; `kernels/packings.py` says what each layout means.
#pragma once

#include <cstdint>

extern "C" {

// Rows of one layout.
struct LsBand {
  const uint8_t* data;
  int64_t row_bytes;
  int32_t rows;
  int32_t packing;  // Packing.code
};

// W [rows, columns], bands from top to bottom; bias [rows] or null.
struct LsMatrix {
  const LsBand* bands;
  const float* bias;
  int32_t band_count, rows, columns;
};

// out[n, rows] = x[n, columns] W^T + bias. norm [columns]: x is RMS-normalised by it first; null: taken as it is.
struct LsLinear {
  LsMatrix matrix;
  const float* x;
  const float* norm;
  float* out;
  int32_t n, threads;
  float eps;
};

// The same for many rows, not normalised; x and out bfloat16 (dtype 0) or float32 (1), sums in float32.
struct LsMany {
  LsMatrix matrix;
  const void* x;
  void* out;
  int32_t n, dtype, threads;
};

// What comes before attention in a layer: norm, q|k|v, norms of heads, rotation.
struct LsBefore {
  LsMatrix qkv;
  const float* x;       // [n, qkv.columns]
  const float* norm;    // [qkv.columns]
  const float* q_norm;  // [dim] or null
  const float* k_norm;
  const float* cos;     // [n, rotary]; null: not rotated
  const float* sin;     // [n, rotary], the first half negated
  float* q;             // [n, heads, dim]
  void* k;              // [n, kv_heads, dim] in the stored dtype
  void* v;
  int32_t n, heads, kv_heads, dim, rotary, kv_dtype, threads;  // kv_dtype 0: bfloat16, 1: float32
  float eps;
};

// What comes after attention in a layer: output projection, residual, norm, gated MLP, residual.
struct LsAfter {
  LsMatrix out, gate, up, down;
  const float* attention;            // [n, out.columns]
  float* x;                          // [n, out.rows], updated in place
  const float* post_attention_norm;  // [out.rows] or null
  const float* mlp_norm;
  const float* post_mlp_norm;
  int32_t n, activation, threads;  // activation 0: SiLU, 1: GELU by tanh
  float eps;
};

// Numbers of packed rows as bfloat16 [rows, columns].
struct LsUnpack {
  LsBand band;
  uint16_t* out;
  int32_t columns, threads;
};
}

// Implemented once for each instruction set.
typedef void (*LinearFunction)(const LsLinear*);
typedef void (*ManyFunction)(const LsMany*);
typedef void (*BeforeFunction)(const LsBefore*);
typedef void (*AfterFunction)(const LsAfter*);
typedef void (*UnpackFunction)(const LsUnpack*);
