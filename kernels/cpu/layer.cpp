// The parts of a decoder layer around attention, for few rows: one parallel region each, weights read once.
//
// Everything is float32 between the stored weights and the stored K and V. RMSNorm: arXiv:1910.07467. RoPE: arXiv:2104.09864.
#include <omp.h>

#include <cmath>
#include <vector>

#include "elementwise.h"
#include "rows.h"

namespace {

template <class T>
T* grown(std::vector<T>& v, size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

// Rows for products, kept between calls: see Input.
struct Padded {
  std::vector<float> numbers;
  std::vector<uint16_t> halves;

  // Room for n rows; products read up to AT_ONCE rows from any.
  void reserve(int n, int columns) {
    size_t size = (size_t)(n + AT_ONCE) * padded(columns);
    grown(numbers, size);
    grown(halves, size);
  }

  Input input(int columns) const { return {numbers.data(), halves.data(), padded(columns)}; }

  float* row(int r, int columns) { return numbers.data() + (int64_t)r * padded(columns); }

  // Numbers [begin, end) of a row are written; those at the row's end are followed by zeros.
  void written(int r, int begin, int end, int columns) {
    float* at = row(r, columns);
    if (end == columns) std::fill(at + columns, at + padded(columns), 0.0f);
#if defined(__AVX512BF16__)
    uint16_t* half = halves.data() + (int64_t)r * padded(columns);
    for (int i = begin; i < end; i += RUN)  // `begin` is a multiple of RUN
      _mm512_storeu_si512(half + i, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + i + 16), _mm512_loadu_ps(at + i)));
#else
    (void)begin;
#endif
  }
};

struct Scratch {
  Padded x, z;
  std::vector<float> y;
};
thread_local Scratch scratch;

// Row r of `to`, normalised on the way where `norm` is given.
inline void prepare(const float* x, const float* norm, int columns, float eps, Padded& to, int r) {
  if (norm) normalised(x, norm, columns, eps, to.row(r, columns));
  else std::memcpy(to.row(r, columns), x, columns * sizeof(float));
  to.written(r, 0, columns, columns);
}

// x[row] += y[row], normalised first where the family does so.
inline void add_residual(float* x, float* y, const float* norm, int count, float eps) {
  if (norm) normalised(y, norm, count, eps, y);
  each(count, [&](int i, int part) { put(x + i, get(x + i, part) + get(y + i, part), part); });
}

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(prefix, isa) LONGSHELF_JOIN(prefix, isa)

void LONGSHELF_NAME(linear_, LONGSHELF_ISA)(const LsLinear* call) {
  const LsLinear& a = *call;
  int columns = a.matrix.columns;
  Padded& x = scratch.x;
  x.reserve(a.n, columns);
#pragma omp parallel num_threads(a.threads)
  {
#pragma omp for schedule(static)
    for (int r = 0; r < a.n; r++) prepare(a.x + (int64_t)r * columns, a.norm, columns, a.eps, x, r);
    Share share(a.matrix.rows, omp_get_thread_num(), omp_get_num_threads());
    matrix_rows(a.matrix, share.lo, share.hi, x.input(columns), a.n, a.out, a.matrix.rows);
  }
}

void LONGSHELF_NAME(before_, LONGSHELF_ISA)(const LsBefore* call) {
  const LsBefore& a = *call;
  int columns = a.qkv.columns, heads = a.heads + 2 * a.kv_heads;
  Padded& x = scratch.x;
  x.reserve(a.n, columns);
  float* y = grown(scratch.y, (size_t)a.n * a.qkv.rows);
#pragma omp parallel num_threads(a.threads)
  {
#pragma omp for schedule(static)
    for (int r = 0; r < a.n; r++) prepare(a.x + (int64_t)r * columns, a.norm, columns, a.eps, x, r);
    Share share(a.qkv.rows, omp_get_thread_num(), omp_get_num_threads());
    matrix_rows(a.qkv, share.lo, share.hi, x.input(columns), a.n, y, a.qkv.rows);
#pragma omp barrier
#pragma omp for collapse(2) schedule(static)
    for (int r = 0; r < a.n; r++)
      for (int h = 0; h < heads; h++) {
        float* head = y + (int64_t)r * a.qkv.rows + (int64_t)h * a.dim;
        a.kv_dtype ? place_head<float>(a, r, h, head) : place_head<uint16_t>(a, r, h, head);
      }
  }
}

void LONGSHELF_NAME(after_, LONGSHELF_ISA)(const LsAfter* call) {
  const LsAfter& a = *call;
  int hidden = a.out.rows, wide = a.gate.rows;
  Padded &x = scratch.x, &z = scratch.z;
  x.reserve(a.n, std::max(a.out.columns, hidden));
  z.reserve(a.n, wide);
  float* y = grown(scratch.y, (size_t)a.n * std::max(hidden, wide));
#pragma omp parallel num_threads(a.threads)
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    Share hidden_share(hidden, thread, threads), wide_share(wide, thread, threads);
#pragma omp for schedule(static)
    for (int r = 0; r < a.n; r++) prepare(a.attention + (int64_t)r * a.out.columns, nullptr, a.out.columns, a.eps, x, r);
    matrix_rows(a.out, hidden_share.lo, hidden_share.hi, x.input(a.out.columns), a.n, y, hidden);
#pragma omp barrier
#pragma omp for schedule(static)
    for (int r = 0; r < a.n; r++) {
      float* row = a.x + (int64_t)r * hidden;
      add_residual(row, y + (int64_t)r * hidden, a.post_attention_norm, hidden, a.eps);
      prepare(row, a.mlp_norm, hidden, a.eps, x, r);
    }
    matrix_rows(a.gate, wide_share.lo, wide_share.hi, x.input(hidden), a.n, z.row(0, wide), padded(wide));
    matrix_rows(a.up, wide_share.lo, wide_share.hi, x.input(hidden), a.n, y, wide);
    for (int r = 0; r < a.n; r++) {
      float *gate = z.row(r, wide) + wide_share.lo, *up = y + (int64_t)r * wide + wide_share.lo;
      each(wide_share.hi - wide_share.lo, [&](int i, int part) {
        put(gate + i, activated(get(gate + i, part), a.activation) * get(up + i, part), part);
      });
      if (wide_share.lo < wide_share.hi) z.written(r, wide_share.lo, wide_share.hi, wide);
    }
#pragma omp barrier
    matrix_rows(a.down, hidden_share.lo, hidden_share.hi, z.input(wide), a.n, y, hidden);
#pragma omp barrier
#pragma omp for schedule(static)
    for (int r = 0; r < a.n; r++)
      add_residual(a.x + (int64_t)r * hidden, y + (int64_t)r * hidden, a.post_mlp_norm, hidden, a.eps);
  }
}

void LONGSHELF_NAME(unpack_, LONGSHELF_ISA)(const LsUnpack* call) {
  const LsUnpack& a = *call;
  with_packing(a.band.packing, [&](auto packing) {
    typedef decltype(packing) P;
#pragma omp parallel for schedule(static) num_threads(a.threads)
    for (int row = 0; row < a.band.rows; row++) {
      const uint8_t* from = a.band.data + (int64_t)row * a.band.row_bytes;
      uint16_t* to = a.out + (int64_t)row * a.columns;
      for (int at = 0; at < a.columns; at += RUN) {
        F numbers[VECTORS];
        P::unpack(from + (int64_t)(at / P::BLOCK) * P::BYTES, at % P::BLOCK / RUN, numbers);
        for (int i = 0; i < VECTORS; i++) {
          typedef uint16_t H16 __attribute__((vector_size(W * 2)));
          U bits;
          std::memcpy(&bits, &numbers[i], sizeof bits);
          H16 upper = __builtin_convertvector(bits >> 16, H16);
          std::memcpy(to + at + i * W, &upper, sizeof upper);
        }
      }
    }
  });
}
