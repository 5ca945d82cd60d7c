// Attention that reads some blocks whole and of others only keys that are drawn, each weighed by 1 / its probability.
//
// For each row and KV head, keys are chosen from their sketches: see choosing.h. What is drawn, and what is certain, is read as it is
// stored, once for all query heads of the group, each weighing its own. Partial results are merged in the order of the blocks.
// Rows don't depend on one another, nor on the number of threads, in any bit.
#include "sampled.h"

#include <omp.h>

#include <vector>

#include "drawn_rows.h"
#include "picked_rows.h"
#include "stages.h"

namespace {

// What one thread works with.
struct Room {
  std::vector<float> guesses;
  Chosen chosen;
  Picked picked;
};

struct SampledJob : DrawnRows {
  using DrawnRows::DrawnRows;

  // Chunks whose drawn keys are read together. A partial result of few keys costs more than the keys, but threads need something to share.
  int span() const { return chunks.size() < 8 ? 1 : chunks.size() < 16 ? 2 : 4; }
  int spans() const { return ((int)chunks.size() + span() - 1) / span(); }

  // Chooses from the chunks of a span and reads what was chosen.
  void read_span(int index, int row, int head, const SketchQuery* queries, Partial* partials, float* const* values, Room& room,
                 StageClock& clock) const {
    int end = std::min((index + 1) * span(), (int)chunks.size()), used = 0, count = 0;
    for (int h = 0; h < group; h++) std::fill_n(values[h], a.dim, 0.0f);
    room.picked.count = 0;
    for (int i = index * span(); i < end; i++) {
      choose(chunks[i], i + 1 < end ? &chunks[i + 1] : nullptr, row, head, queries, room.chosen);
      clock.ended(SCAN);
      count += room.chosen.count;
      for (int key = 0; key < room.chosen.count; key++) {
        if (room.picked.count == PICKED) read_what_was_picked(row, head, room.picked, partials, values);
        for (int h = 0; h < group; h++) {
          float added = room.picked.added[h][room.picked.count] = room.chosen.added[h][key];
          used += added != NOTHING;
        }
        room.picked.take(chunks[i].block->kv, head, chunks[i].first + room.chosen.keys[key]);
      }
      clock.ended(GATHER);
    }
    read_what_was_picked(row, head, room.picked, partials, values);
    clock.ended(GATHER);
    count_read(row, head, count, used);
  }

  void read_what_was_picked(int row, int head, Picked& picked, Partial* partials, float* const* values) const {
    if (picked.count == 0) return;
    alignas(64) float found[HEADS_MAX][DIM_MAX];
    Partial own[HEADS_MAX];
    float* at[HEADS_MAX];
    for (int h = 0; h < group; h++) at[h] = found[h];
    auto as_it_is = [](int, const float*) {};
    read_picked(a, picked, s.blocks[0].kv.dtype == 1, a.q + ((int64_t)row * a.heads + head * group) * a.dim, as_it_is, own, at);
    for (int h = 0; h < group; h++) merge(partials[h], values[h], own[h], found[h], a.dim);
    picked.count = 0;
  }

  void run() const {
    int tasks = (int)pieces.size() + spans();
    size_t units = (size_t)a.rows * a.kv_heads, per_unit = (size_t)tasks * group;
    std::vector<SketchQuery> queries(units * group);
    std::vector<Partial> partials(units * per_unit);
    static thread_local std::vector<float> kept;
    if (kept.size() < units * per_unit * a.dim) kept.resize(units * per_unit * a.dim);
    float* values = kept.data();
    std::fill_n(s.read, units * 2, 0);
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local Room room;
      StageClock clock(s.seconds);
#pragma omp for schedule(dynamic, 1)
      for (int64_t of = 0; of < (int64_t)units; of++) {
        int row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        take_queries(a.q + of * group * a.dim, group, s.queries + (int64_t)head * a.dim * coordinates(s), s, &queries[of * group]);
        clock.ended(PROJECT);
        find_thresholds(row, head, &queries[of * group], room.guesses);
        clock.ended(THRESHOLD);
      }
      clock.restart();
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)units * tasks; i++) {
        int64_t of = i / tasks;
        int task = (int)(i % tasks), row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
        size_t base = of * per_unit + (size_t)task * group;
        float* at[HEADS_MAX];
        for (int h = 0; h < group; h++) at[h] = values + (base + h) * a.dim;
        if (task >= (int)pieces.size()) {
          read_span(task - (int)pieces.size(), row, head, &queries[of * group], &partials[base], at, room, clock);
          continue;
        }
        read_whole(pieces[task], row, head, &partials[base], at);
        clock.ended(WHOLE);
      }
      clock.restart();
#pragma omp for schedule(static) nowait
      for (int64_t i = 0; i < (int64_t)units * group; i++) {
        int64_t of = i / group;
        int h = (int)(i % group);
        float* out = a.out + i * a.dim;
        std::fill_n(out, a.dim, 0.0f);
        Partial total;
        for (int task = 0; task < tasks; task++) {
          size_t from = of * per_unit + (size_t)task * group + h;
          merge(total, out, partials[from], values + from * a.dim, a.dim);
        }
        normalise(total, out, a.dim, a.lse ? a.lse + i : nullptr);
      }
      clock.ended(MERGE);
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(sampled_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsSampled* call) { SampledJob(*call).run(); }
