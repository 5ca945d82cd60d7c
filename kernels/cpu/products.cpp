// Products of many rows with a matrix: threads share out its rows.
#include <omp.h>

#include <algorithm>
#include <vector>

#include "elementwise.h"
#include "panels.h"

namespace {

constexpr int GROUP = 4;     // panels at most that one task multiplies
constexpr int CHUNK = 512;   // rows of x at most of one task, and
constexpr int SHARED = 128;  // at least, where they are shared out too: unpacking is done anew for each

std::vector<Panel> panels_of(const LsMatrix& m) {
  std::vector<Panel> panels;
  int top = 0;
  for (int b = 0; b < m.band_count; top += m.bands[b++].rows)
    for (int first = 0; first < m.bands[b].rows; first += PANEL)
      panels.push_back({m.bands + b, first, top + first, std::min(PANEL, m.bands[b].rows - first)});
  return panels;
}

int divided(int a, int b) { return (a + b - 1) / b; }

// x [n, columns] as float32: itself, or in `room`.
const float* numbers(const float* x, int64_t, std::vector<float>&, int) { return x; }

const float* numbers(const uint16_t* x, int64_t count, std::vector<float>& room, int threads) {
  if ((int64_t)room.size() < count) room.resize(count);
  float* to = room.data();
  constexpr int64_t STEP = 1 << 12;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t start = 0; start < count; start += STEP)
    each((int)std::min(STEP, count - start), [&](int i, int part) { put(to + start + i, get(x + start + i, part), part); });
  return to;
}

// A panel's sums for rows [begin, end) of x, with the bias.
template <class T>
void finish(const LsMany& a, const Panel& panel, int begin, int end, const float* sums) {
  for (int row = begin; row < end; row++, sums += PANEL) {
    T* out = (T*)a.out + (int64_t)row * a.matrix.rows + panel.top;
    const float* bias = a.matrix.bias ? a.matrix.bias + panel.top : nullptr;
    each(panel.rows, [&](int i, int part) {
      F sum = load(sums + i);
      put(out + i, bias ? sum + get(bias + i, part) : sum, part);
    });
  }
}

thread_local std::vector<float> widened, unpacked, sums;

template <class T>
void many(const LsMany& a) {
  int columns = a.matrix.columns;
  const float* x = numbers((const T*)a.x, (int64_t)a.n * columns, widened, a.threads);
  std::vector<Panel> panels = panels_of(a.matrix);
  int group = std::clamp((int)panels.size() / (4 * a.threads), 1, GROUP), groups = divided(panels.size(), group);
  int chunks = std::max(divided(a.n, CHUNK), std::min(a.n / SHARED, divided(2 * a.threads, groups)));
  int chunk = divided(a.n, chunks);
#pragma omp parallel num_threads(a.threads)
  {
    unpacked.resize((size_t)GROUP * PANEL * DEPTH);
    sums.resize((size_t)GROUP * PANEL * (CHUNK + DOWN));
#pragma omp for collapse(2) schedule(dynamic, 1)
    for (int g = 0; g < groups; g++)
      for (int c = 0; c < chunks; c++) {
        int first = g * group, count = std::min(group, (int)panels.size() - first);
        int begin = c * chunk, end = std::min(a.n, begin + chunk);
        if (begin >= end) continue;
        multiply(&panels[first], count, x, begin, end, columns, unpacked.data(), sums.data());
        int height = divided(end - begin, DOWN) * DOWN;
        for (int p = 0; p < count; p++) finish<T>(a, panels[first + p], begin, end, sums.data() + (size_t)p * height * PANEL);
      }
  }
}

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(prefix, isa) LONGSHELF_JOIN(prefix, isa)

void LONGSHELF_NAME(many_, LONGSHELF_ISA)(const LsMany* call) { call->dtype ? many<float>(*call) : many<uint16_t>(*call); }
