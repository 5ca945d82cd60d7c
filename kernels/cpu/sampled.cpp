// Attention that reads some blocks whole and of others only keys that are drawn, each weighed by 1 / its probability.
//
// For each row and KV head, keys are chosen from their sketches: see choosing.h. What is drawn, and what is certain, is read as it is
// stored, once for all query heads of the group, each weighing its own. Partial results are merged in the order of the blocks.
// Rows don't depend on one another, nor on the number of threads, in any bit.
#include "sampled.h"

#include <omp.h>

#include <vector>

#include "drawn_rows.h"

namespace {

struct SampledJob : DrawnRows {
  using DrawnRows::DrawnRows;

  void run() const {
    int tasks = (int)(pieces.size() + chunks.size()), coordinates = 8 * s.fours + 16 * s.twos + 32 * s.ones;
    size_t rows = (size_t)a.rows * a.kv_heads, per_row = (size_t)tasks * group;
    std::vector<SketchQuery> queries(rows * group);
    std::vector<Partial> partials(rows * per_row);
    static thread_local std::vector<float> kept;
    if (kept.size() < rows * per_row * a.dim) kept.resize(rows * per_row * a.dim);
    float* values = kept.data();
    std::fill_n(s.read, rows * 2, 0);
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local std::vector<float> sampled;
      static thread_local Chosen chosen;
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)rows * group; i++) {
        int row = (int)(i / a.heads), head = (int)(i % a.heads) / group, h = (int)(i % group);
        const float* map = s.queries + (int64_t)head * a.dim * coordinates;
        queries[i].take(a.q + i * a.dim, map, a.dim, s, a.scale);
        s.thresholds[i] = find_threshold(row, head, h, queries[i], sampled);
      }
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)rows * tasks; i++) {
        int64_t of = i / tasks;
        int task = (int)(i % tasks), row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        size_t base = of * per_row + (size_t)task * group;
        float* at[HEADS_MAX];
        for (int h = 0; h < group; h++) at[h] = values + (base + h) * a.dim;
        if (task < (int)pieces.size()) {
          read_whole(pieces[task], row, head, &partials[base], at);
          continue;
        }
        const Chunk& chunk = chunks[task - pieces.size()];
        choose(chunk, row, head, &queries[of * group], chosen);
        read_chosen(chunk, chosen, row, head, &partials[base], at, Silent{});
      }
#pragma omp for schedule(static)
      for (int64_t i = 0; i < (int64_t)rows * group; i++) {
        int64_t of = i / group;
        int h = (int)(i % group), row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        int64_t to = (int64_t)row * a.heads + head * group + h;
        float* out = a.out + to * a.dim;
        std::fill_n(out, a.dim, 0.0f);
        Partial total;
        for (int task = 0; task < tasks; task++) {
          size_t from = of * per_row + (size_t)task * group + h;
          merge(total, out, partials[from], values + from * a.dim, a.dim);
        }
        normalise(total, out, a.dim, a.lse ? a.lse + to : nullptr);
      }
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(sampled_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsSampled* call) { SampledJob(*call).run(); }
