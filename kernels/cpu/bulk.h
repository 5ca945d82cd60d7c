// The C interface of what stands between the products of many rows; `kernels/reference.py` says what each function means.
// Numbers are bfloat16 (dtype 0) or float32 (dtype 1), computed in float32 and rounded once.
#pragma once

#include <cstdint>

extern "C" {

// x += delta where given; out = RMSNorm(x) * weight. x, delta, out [n, columns].
struct LsNorm {
  void* x;
  const void* delta;
  const float* weight;
  void* out;
  int32_t n, columns, dtype, threads;
  float eps;
};

// gate = activation(gate) * up, over `count` numbers.
struct LsGate {
  void* gate;
  const void* up;
  int64_t count;
  int32_t activation, dtype, threads;  // activation 0: SiLU, 1: GELU by tanh
};

// q|k|v [n, (heads + 2 kv_heads) dim] taken apart: norms of heads, rotation; q float32, k and v in the dtype.
struct LsHeads {
  const void* qkv;
  const float* q_norm;  // [dim] or null
  const float* k_norm;
  const float* cos;  // [n, rotary]; null: not rotated
  const float* sin;  // [n, rotary], the first half negated
  float* q;          // [n, heads, dim]
  void* k;           // [n, kv_heads, dim]
  void* v;
  int32_t n, heads, kv_heads, dim, rotary, dtype, threads;
  float eps;
};
}

// Implemented once for each instruction set.
typedef void (*NormFunction)(const LsNorm*);
typedef void (*GateFunction)(const LsGate*);
typedef void (*HeadsFunction)(const LsHeads*);
