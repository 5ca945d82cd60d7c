// Sampled attention that keeps a promise: a pilot tells for each row and query head at which threshold, then keys are drawn afresh.
//
// Sketches, certain keys and blocks that are read whole are read once for both draws. Rows don't depend on one another, nor on the
// number of threads, in any bit.
#include <omp.h>

#include "pilot.h"
#include "redrawing.h"

namespace {

struct BudgetedJob : Redrawing {
  const LsBudgeted& promise;
  int before, slots;  // partial results of a head: pieces and certain keys of chunks come before what is drawn of chunks
  size_t groups;      // of query heads: one for each row and KV head
  std::vector<Partial> partials;
  std::vector<SketchQuery> queries;
  std::vector<PilotKeys> piloted;
  float *values, *guesses;

  explicit BudgetedJob(const LsBudgeted& call)
      : Redrawing(call.draw),
        promise(call),
        before((int)(pieces.size() + chunks.size())),
        slots(before + (int)chunks.size()),
        groups((size_t)a.rows * a.kv_heads),
        partials(groups * slots * group),
        queries(groups * group),
        piloted(groups * chunks.size() * group) {
    static thread_local std::vector<float> room, guessed;
    if (room.size() < partials.size() * a.dim) room.resize(partials.size() * a.dim);
    if (guessed.size() < piloted.size() * CHUNK) guessed.resize(piloted.size() * CHUNK);
    values = room.data();
    guesses = guessed.data();
  }

  // A slot of a group: where its partial results and values go.
  struct Slot {
    Partial* partials;
    float* values[HEADS_MAX];
  };

  Slot slot(size_t of, int index) {
    size_t base = (of * slots + index) * group;
    Slot result = {&partials[base], {}};
    for (int h = 0; h < group; h++) result.values[h] = values + (base + h) * a.dim;
    return result;
  }

  size_t chunk_at(size_t of, size_t chunk) const { return (of * chunks.size() + chunk) * group; }

  void prepare(size_t of, std::vector<float>& looked_at) {
    int row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
    SketchQuery* own = &queries[of * group];
    take_queries(a.q + of * group * a.dim, group, s.queries + (int64_t)head * a.dim * coordinates(s), s, own);
    if (s.budgets) find_thresholds(row, head, own, looked_at);
  }

  // Whole pieces, certain keys, and the pilot's.
  void read_first(size_t of, int task, Chosen& chosen) {
    int row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads), pieces_ = (int)pieces.size();
    Slot to = slot(of, task);
    if (task < pieces_) return read_whole(pieces[task], row, head, to.partials, to.values);
    const Chunk& chunk = chunks[task - pieces_];
    size_t at = chunk_at(of, task - pieces_);
    take_certain(chunk, head, chosen);
    read_chosen(chunk, chosen, row, head, to.partials, to.values, Silent{});
    guess_chunk(chunk, head, &queries[of * group], guesses + at * CHUNK);
    draw_from(guesses + at * CHUNK, chunk, row, head, promise.seed, chosen);
    to = slot(of, before + task - pieces_);
    read_chosen(chunk, chosen, row, head, to.partials, to.values,
                [&](int h, const float* weights) { piloted[at + h].keep(chosen, h, weights); });
  }

  // What is drawn afresh takes the pilot's place.
  void read_again(size_t of, size_t index, Chosen& chosen) {
    int row = (int)(of / a.kv_heads), head = (int)(of % a.kv_heads);
    Slot to = slot(of, before + (int)index);
    std::fill_n(to.partials, group, Partial());
    draw_from(guesses + chunk_at(of, index) * CHUNK, chunks[index], row, head, s.seed, chosen);
    read_chosen(chunks[index], chosen, row, head, to.partials, to.values, Silent{});
  }

  // All partial results of query head i; gives their sum.
  Partial merged(int64_t i) {
    float* out = a.out + i * a.dim;
    std::fill_n(out, a.dim, 0.0f);
    Partial total;
    for (int index = 0; index < slots; index++) {
      size_t from = (i / group * slots + index) * group + i % group;
      merge(total, out, partials[from], values + from * a.dim, a.dim);
    }
    normalise(total, out, a.dim, a.lse ? a.lse + i : nullptr);
    return total;
  }

  void plan(int64_t i, Pilot& pilot) {
    if (s.thresholds[i] == EVERYTHING) return;
    size_t of = i / group;
    int h = (int)(i % group), head = (int)(of % a.kv_heads);
    const float* out = a.out + i * a.dim;
    Partial total = merged(i);
    pilot.clear();
    for (size_t chunk = 0; chunk < chunks.size(); chunk++) {
      float top = slot(of, before + (int)chunk).partials[h].max;
      pilot.add(chunks[chunk], head, piloted[chunk_at(of, chunk) + h], std::exp(top - total.max) / total.sum, out, a.dim);
    }
    s.thresholds[i] = pilot.lowered(s.thresholds[i], promise, out, a.dim);
  }

  void run() {
    int64_t heads = (int64_t)groups * group, firsts = (int64_t)groups * before, seconds = (int64_t)groups * chunks.size();
    std::fill_n(s.read, groups * 2, 0);
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local std::vector<float> looked_at;
      static thread_local Chosen chosen;
      static thread_local Pilot pilot;
#pragma omp for schedule(dynamic, 1)
      for (int64_t of = 0; of < (int64_t)groups; of++) prepare(of, looked_at);
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < firsts; i++) read_first(i / before, (int)(i % before), chosen);
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < heads; i++) plan(i, pilot);
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < seconds; i++) read_again(i / chunks.size(), i % chunks.size(), chosen);
#pragma omp for schedule(static)
      for (int64_t i = 0; i < heads; i++) merged(i);
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(budgeted_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsBudgeted* call) { BudgetedJob(*call).run(); }
