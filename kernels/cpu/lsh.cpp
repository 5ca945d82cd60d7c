// Hash tables of keys: building them, and attention over the keys that meet a query in two of them.
//
// A call hashes its query heads, looks through a bucket of each table for each of them, unites what the heads of a KV head met, and
// reads each of those keys once: its product with a query tells both its logit and how likely it was met. Nothing depends on other rows,
// or on the number of threads, in any bit.
#include "lsh.h"

#include <omp.h>

#include "hashing.h"
#include "picked_rows.h"

namespace {

// ---- building ----

struct BuildJob {
  static constexpr int AT_ONCE = 64;  // keys that stay in L1 while all directions pass

  const LsLshBuild& b;
  Codes codes;

  explicit BuildJob(const LsLshBuild& call) : b(call), codes{call.bits, call.tables, call.dim} {}

  // Keys [first, first + count) of a head less its centre, and their norms.
  void centre(int head, int first, int count, float* to) const {
    const float* centre = b.centres + (size_t)head * b.dim;
    for (int i = 0; i < count; i++, to += b.dim) {
      const LsBlock& block = block_of(b.blocks, b.block_count, b.blocks[0].position + first + i);
      int64_t at = head * block.head_stride + (b.blocks[0].position + first + i - block.position) * block.token_stride;
      F squares = {};
      for (int d = 0; d < b.dim; d += W) {
        F key = block.dtype == 0 ? load(static_cast<const uint16_t*>(block.k) + at + d) : load(static_cast<const float*>(block.k) + at + d);
        F less = key - load(centre + d);
        store(to + d, less);
        squares = fused(less, less, squares);
      }
      b.norms[(size_t)head * b.keys + first + i] = std::sqrt(sum(squares));
    }
  }

  void hash(int head, int first, int count, std::vector<float>& centred, std::vector<uint16_t>& signs) const {
    centred.resize((size_t)AT_ONCE * b.dim);
    signs.resize((size_t)AT_ONCE * codes.words());
    centre(head, first, count, centred.data());
    for (int panel = 0; panel < codes.panels(); panel++) codes.sign(centred.data(), count, b.panels, panel, signs.data());
    for (int table = 0; table < b.tables; table++) {
      uint16_t* to = b.codes + ((size_t)head * b.tables + table) * b.keys + first;
      for (int i = 0; i < count; i++) to[i] = (uint16_t)codes.of(&signs[(size_t)i * codes.words()], table);
    }
  }

  // Counting sort: keys of one code stay in order.
  void sort(int64_t table) const {
    const uint16_t* of_keys = b.codes + table * b.keys;
    uint16_t *starts = b.starts + table * (codes.buckets() + 1), *ids = b.ids + table * b.keys;
    uint16_t next[1 << 11];
    std::fill_n(next, codes.buckets(), (uint16_t)0);
    for (int key = 0; key < b.keys; key++) next[of_keys[key]]++;
    int total = 0;
    for (int code = 0; code < codes.buckets(); code++) {
      starts[code] = (uint16_t)total;
      total += next[code];
      next[code] = starts[code];
    }
    starts[codes.buckets()] = (uint16_t)total;
    for (int key = 0; key < b.keys; key++) ids[next[of_keys[key]]++] = (uint16_t)key;
  }

  void run() const {
    int runs = (b.keys + AT_ONCE - 1) / AT_ONCE;
#pragma omp parallel num_threads(b.threads)
    {
      std::vector<float> centred;
      std::vector<uint16_t> signs;
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)b.kv_heads * runs; i++) {
        int first = (int)(i % runs) * AT_ONCE;
        hash((int)(i / runs), first, std::min(AT_ONCE, b.keys - first), centred, signs);
      }
#pragma omp for schedule(dynamic, 1)
      for (int64_t table = 0; table < (int64_t)b.kv_heads * b.tables; table++) sort(table);
    }
  }
};

// ---- looking up ----

// How often each key of an index was met, a byte a key: cleared once in 127 look-ups, since each counts from a number of its own.
struct Counters {
  std::vector<uint8_t> bytes;
  int base = 254;

  // Room for so many keys, none of which was met; gives the number that stands for one meeting.
  uint8_t begin(int keys) {
    base += 2;
    if ((int)bytes.size() < keys || base > 254) {
      bytes.assign(std::max<size_t>(bytes.size(), keys), 0);
      base = 2;
    }
    return (uint8_t)base;
  }
};

constexpr int KEYS = 16;  // whose bits stand together
constexpr uint16_t CERTAIN = 0x8000;

struct Drawn {
  uint16_t key, heads;  // a bit for each query head that met it, or CERTAIN
};

struct LshJob : PickedJob {
  const LsLsh& s;
  Codes codes;
  Inclusion inclusion;
  std::vector<uint16_t> signs;                  // [rows, heads, words]
  std::vector<std::vector<uint16_t>>& met;      // by query head and index
  std::vector<std::vector<Drawn>>& drawn;       // by row, KV head and index

  LshJob(const LsLsh& call, std::vector<std::vector<uint16_t>>& met_, std::vector<std::vector<Drawn>>& drawn_)
      : PickedJob(call.dense), s(call), codes{call.bits, call.tables, a.dim}, inclusion(codes), met(met_), drawn(drawn_) {
    signs.resize((size_t)a.rows * a.heads * codes.words());
    if (met.size() < (size_t)a.rows * a.heads * s.index_count) met.resize((size_t)a.rows * a.heads * s.index_count);
    if (drawn.size() < (size_t)units() * s.index_count) drawn.resize((size_t)units() * s.index_count);
  }

  // The keys of an index that query head i of all rows meets twice. Gives the bytes that were read.
  int64_t look_up(int64_t i, const LsIndex& index, std::vector<uint16_t>& found) const {
    static thread_local Counters counters;
    int64_t first = (int64_t)head((int)(i / group)) * s.tables;
    const uint16_t* begin[TABLES_MAX];
    const uint16_t* end[TABLES_MAX];
    for (int table = 0; table < s.tables; table++) {
      begin[table] = index.starts + (first + table) * (codes.buckets() + 1) + codes.of(&signs[i * codes.words()], table);
      __builtin_prefetch(begin[table]);
    }
    int64_t entries = 0;
    for (int table = 0; table < s.tables; table++) {
      const uint16_t* ids = index.ids + (first + table) * index.keys;
      end[table] = ids + begin[table][1];
      begin[table] = ids + begin[table][0];
      entries += end[table] - begin[table];
      __builtin_prefetch(begin[table]);
    }
    uint8_t once = counters.begin(index.keys), *times = counters.bytes.data();
    found.clear();
    for (int table = 0; table < s.tables; table++)
      for (const uint16_t* id = begin[table]; id < end[table]; id++) {
        uint8_t seen = times[*id];
        if (seen < once) {
          times[*id] = once;
        } else if (seen == once) {
          times[*id] = once + 1;
          found.push_back(*id);
        }
      }
    return entries * 2 + (int64_t)s.tables * 4;
  }

  // What the heads of a unit met of an index, and what is certain, in order.
  void unite(int unit, int of_index) {
    static thread_local std::vector<uint16_t> heads_of, any;
    const LsIndex& index = s.indexes[of_index];
    int groups = (index.keys + KEYS - 1) / KEYS;
    if (heads_of.size() < (size_t)index.keys) heads_of.resize(index.keys);
    any.assign(groups, 0);
    for (int h = 0; h < group; h++)
      for (uint16_t key : met[((int64_t)unit * group + h) * s.index_count + of_index]) {
        uint16_t bit = 1 << (key % KEYS);
        if (!(any[key / KEYS] & bit)) heads_of[key] = 0;
        any[key / KEYS] |= bit;
        heads_of[key] |= 1 << h;
      }
    std::vector<Drawn>& to = drawn[(size_t)unit * s.index_count + of_index];
    to.clear();
    const uint16_t* certain = index.certain ? index.certain + (int64_t)head(unit) * groups : nullptr;
    int used = 0, met_alone = 0;
    for (int g = 0; g < groups; g++) {
      uint32_t sure = certain ? certain[g] : 0;
      for (uint32_t left = any[g] | sure; left; left &= left - 1) {
        int bit = __builtin_ctz(left), key = g * KEYS + bit;
        bool is_sure = sure >> bit & 1;
        to.push_back({(uint16_t)key, is_sure ? CERTAIN : heads_of[key]});
        used += is_sure ? group : __builtin_popcount(heads_of[key]);
        met_alone += !is_sure;
      }
    }
    count(unit, (int)to.size(), used, met_alone * 4);
  }

  void count(int unit, int rows, int keys, int64_t bytes) const {
    int32_t* read = s.read + 3 * unit;
#pragma omp atomic
    read[0] += rows;
#pragma omp atomic
    read[1] += keys;
#pragma omp atomic
    read[2] += (int32_t)bytes;
  }

  int runs(int unit) const {
    int total = 0;
    for (int i = 0; i < s.index_count; i++) total += (int)(drawn[(size_t)unit * s.index_count + i].size() + PICKED - 1) / PICKED;
    return total;
  }

  void read_run(int unit, int run, Partial* partials, float* const* values, Picked& picked) const {
    const std::vector<Drawn>* of = &drawn[(size_t)unit * s.index_count];
    const LsIndex* index = s.indexes;
    for (int here; (here = (int)(of->size() + PICKED - 1) / PICKED) <= run; run -= here) of++, index++;
    const Drawn* keys = of->data() + run * PICKED;
    picked.count = 0;
    alignas(64) float norms[PICKED + W] = {};
    alignas(64) int32_t heads[PICKED + W] = {};  // that met each key; -1: certain
    for (int i = 0, count = std::min(PICKED, (int)of->size() - run * PICKED); i < count; i++) {
      int position = index->blocks[0].position + keys[i].key;
      const LsBlock& block = block_of(index->blocks, index->block_count, position);
      picked.take(block, head(unit), position - block.position);
      norms[i] = index->norms[(int64_t)head(unit) * index->keys + keys[i].key];
      heads[i] = keys[i].heads == CERTAIN ? -1 : keys[i].heads;
    }
    const float* centre = index->centres + (int64_t)head(unit) * a.dim;
    auto on_top = [&](int h, const float* products) { weigh_up(q(unit) + h * a.dim, centre, products, norms, heads, h, picked); };
    read_picked(a, picked, index->blocks[0].dtype == 1, q(unit), on_top, partials, values);
  }

  // -ln u of the picked keys for query head h.
  void weigh_up(const float* query, const float* centre, const float* products, const float* norms, const int32_t* heads, int h,
                Picked& picked) const {
    F dot = {}, squares = {};
    for (int d = 0; d < a.dim; d += W) {
      dot = fused(load(query + d), load(centre + d), dot);
      squares = fused(load(query + d), load(query + d), squares);
    }
    float to_centre = sum(dot), length = std::sqrt(sum(squares));
    for (int i = 0; i < picked.count; i += W) {
      F lengths = load(norms + i) * length;
      F cos = (load(products + i) - to_centre) / (lengths > F{} ? lengths : splat(1.0f));
      F unknown = load(norms + i) + length > F{} ? F{} : splat(1.0f);
      I met_by;
      std::memcpy(&met_by, heads + i, sizeof met_by);
      F added = (met_by >> h & 1) != 0 ? splat(0.0f) - inclusion.log_u(lengths > F{} ? cos : unknown) : splat(NOTHING);
      store(picked.added[h] + i, met_by == -1 ? F{} : added);
    }
  }

  void run() {
    int64_t heads = (int64_t)a.rows * a.heads;
    std::fill_n(s.read, 3 * units(), 0);
#pragma omp parallel num_threads(a.threads)
    {
      static thread_local Picked picked;
#pragma omp for schedule(static)
      for (int panel = 0; panel < codes.panels(); panel++) codes.sign(a.q, (int)heads, s.panels, panel, signs.data());
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < heads * s.index_count; i++) {
        int64_t of = i / s.index_count;
        count((int)(of / group), 0, 0, look_up(of, s.indexes[i % s.index_count], met[i]));
      }
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < (int64_t)units() * s.index_count; i++) unite((int)(i / s.index_count), (int)(i % s.index_count));
#pragma omp single
      plan([&](int unit) { return runs(unit); });
#pragma omp for schedule(dynamic, 1)
      for (int64_t task = 0; task < first.back(); task++)
        read(task, [&](int unit, int run, Partial* partials, float* const* values) { read_run(unit, run, partials, values, picked); });
#pragma omp for schedule(static)
      for (int64_t i = 0; i < heads; i++) merge_head(i);
    }
  }
};

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(stem, isa) LONGSHELF_JOIN(stem, isa)

void LONGSHELF_NAME(lsh_build_, LONGSHELF_ISA)(const LsLshBuild* call) { BuildJob(*call).run(); }

void LONGSHELF_NAME(lsh_, LONGSHELF_ISA)(const LsLsh* call) {
  static thread_local std::vector<std::vector<uint16_t>> met;
  static thread_local std::vector<std::vector<Drawn>> drawn;
  LshJob(*call, met, drawn).run();
}
