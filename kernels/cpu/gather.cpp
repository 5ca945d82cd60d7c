// Attention over keys that somebody chose, beside blocks that are read whole.
#include "gather.h"

#include <omp.h>

#include "picked_rows.h"

namespace {

struct GatherJob : PickedJob {
  const LsGather& g;

  explicit GatherJob(const LsGather& call) : PickedJob(call.dense), g(call) {
    plan([&](int unit) { return (length(unit) + PICKED - 1) / PICKED; });
  }

  int64_t length(int unit) const { return g.offsets[unit + 1] - g.offsets[unit]; }

  void read_run(int unit, int run, Partial* partials, float* const* values, Picked& picked) const {
    int64_t begin = (int64_t)run * PICKED, count = std::min<int64_t>(PICKED, length(unit) - begin);
    const int32_t* ids = g.ids + g.offsets[unit] + begin;
    picked.count = 0;
    for (int i = 0; i < count; i++) {
      const LsBlock& block = block_of(g.blocks, g.block_count, ids[i]);
      picked.take(block, head(unit), ids[i] - block.position);
    }
    const float* weights = g.log_weights + g.offsets[unit] * group + begin;
    auto on_top = [&](int h, const float*) { std::copy_n(weights + h * length(unit), count, picked.added[h]); };
    read_picked(a, picked, g.blocks[0].dtype == 1, q(unit), on_top, partials, values);
  }

  void run() {
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local Picked picked;
#pragma omp for schedule(dynamic, 1)
      for (int64_t task = 0; task < first.back(); task++)
        read(task, [&](int unit, int run, Partial* partials, float* const* values) { read_run(unit, run, partials, values, picked); });
#pragma omp for schedule(static)
      for (int64_t i = 0; i < (int64_t)a.rows * a.heads; i++) merge_head(i);
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(gather_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsGather* call) { GatherJob(*call).run(); }
