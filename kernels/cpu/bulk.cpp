// What stands between the products of many rows: one pass over the numbers each.
#include "bulk.h"

#include <omp.h>

#include <algorithm>

#include "elementwise.h"

namespace {

constexpr int DIM_MAX = 256;

template <class T>
void norm(const LsNorm& a) {
#pragma omp parallel for schedule(static) num_threads(a.threads)
  for (int r = 0; r < a.n; r++) {
    T* x = (T*)a.x + (int64_t)r * a.columns;
    if (a.delta) {
      const T* delta = (const T*)a.delta + (int64_t)r * a.columns;
      each(a.columns, [&](int i, int part) { put(x + i, get(x + i, part) + get(delta + i, part), part); });
    }
    normalised(x, a.weight, a.columns, a.eps, (T*)a.out + (int64_t)r * a.columns);
  }
}

template <class T>
void gate(const LsGate& a) {
  constexpr int64_t STEP = 1 << 14;
#pragma omp parallel for schedule(static) num_threads(a.threads)
  for (int64_t start = 0; start < a.count; start += STEP) {
    T* gate = (T*)a.gate + start;
    const T* up = (const T*)a.up + start;
    each((int)std::min(STEP, a.count - start), [&](int i, int part) {
      put(gate + i, activated(get(gate + i, part), a.activation) * get(up + i, part), part);
    });
  }
}

template <class T>
void heads(const LsHeads& a) {
  int count = a.heads + 2 * a.kv_heads;
#pragma omp parallel for schedule(static) num_threads(a.threads)
  for (int r = 0; r < a.n; r++)
    for (int h = 0; h < count; h++) {
      const T* from = (const T*)a.qkv + ((int64_t)r * count + h) * a.dim;
      float head[DIM_MAX];
      each(a.dim, [&](int i, int part) { put(head + i, get(from + i, part), part); });
      place_head<T>(a, r, h, head);
    }
}

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(prefix, isa) LONGSHELF_JOIN(prefix, isa)

void LONGSHELF_NAME(norm_, LONGSHELF_ISA)(const LsNorm* call) { call->dtype ? norm<float>(*call) : norm<uint16_t>(*call); }

void LONGSHELF_NAME(gate_, LONGSHELF_ISA)(const LsGate* call) { call->dtype ? gate<float>(*call) : gate<uint16_t>(*call); }

void LONGSHELF_NAME(heads_, LONGSHELF_ISA)(const LsHeads* call) { call->dtype ? heads<float>(*call) : heads<uint16_t>(*call); }
