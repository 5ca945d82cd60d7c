// Reading keys and values that are scattered over blocks, each once for all query heads of a KV head.
#pragma once

#include <vector>

#include "scattered.h"

namespace {

constexpr int PICKED = 256;   // keys of one partial result
constexpr int HEADS_OF_KV = 8;

// Up to PICKED rows of one KV head, wherever they lie.
struct Picked {
  int count = 0;
  const void* k[PICKED];
  const void* v[PICKED];
  float added[HEADS_OF_KV][PICKED + W];  // what logits get on top, -inf where a query head doesn't use the key

  void take(const LsBlock& b, int head, int token) {
    int64_t at = head * b.head_stride + token * b.token_stride, size = b.dtype == 0 ? 2 : 4;
    k[count] = static_cast<const char*>(b.k) + at * size;
    v[count++] = static_cast<const char*>(b.v) + at * size;
  }
};

// Which of the blocks has the token at a position; blocks stand in order.
inline const LsBlock& block_of(const LsBlock* blocks, int count, int position) {
  return *(std::upper_bound(blocks, blocks + count, position, [](int at, const LsBlock& b) { return at < b.position; }) - 1);
}

template <typename T>
struct Anywhere {
  const Picked& picked;
  int count;

  const T* key(int i) const { return static_cast<const T*>(picked.k[std::min(i, count - 1)]); }
  const T* value(int i) const { return static_cast<const T*>(picked.v[std::min(i, count - 1)]); }
};

// on_top(h, products) fills in what a head's logits get on top.
template <class OnTop>
void read_picked(const LsAttend& a, Picked& picked, bool wide, const float* q, OnTop on_top, Partial* partials, float* const* values) {
  auto silent = [](int, const float*) {};
  auto added = [&](int h, const float* products) {
    on_top(h, products);
    return picked.added[h];
  };
  int group = a.heads / a.kv_heads;
  if (wide)
    read_scattered<float, PICKED + W>(a, Anywhere<float>{picked, picked.count}, q, group, added, silent, partials, values);
  else
    read_scattered<uint16_t, PICKED + W>(a, Anywhere<uint16_t>{picked, picked.count}, q, group, added, silent, partials, values);
}

// Rows of a call, each KV head of which reads pieces of blocks that are read whole, and keys picked for it: partial results of
// fixed keys, merged in order, so that they depend neither on other rows nor on the number of threads in any bit.
struct PickedJob {
  const LsAttend& a;
  int group;
  std::vector<Piece> pieces;   // of the blocks that are read whole
  std::vector<int64_t> first;  // task of each (row, KV head); then the number of tasks
  std::vector<Partial> partials;
  float* values = nullptr;

  explicit PickedJob(const LsAttend& call) : a(call), group(a.heads / a.kv_heads), pieces(pieces_of(a)) {}

  int units() const { return a.rows * a.kv_heads; }
  int row(int unit) const { return unit / a.kv_heads; }
  int head(int unit) const { return unit % a.kv_heads; }
  const float* q(int unit) const { return a.q + (int64_t)unit * group * a.dim; }

  // runs(unit): the number of runs of up to PICKED keys that it reads.
  template <class Runs>
  void plan(Runs runs) {
    static thread_local std::vector<float> room;
    first.assign(1, 0);
    for (int unit = 0; unit < units(); unit++) first.push_back(first.back() + (int64_t)pieces.size() + runs(unit));
    size_t needed = (size_t)first.back() * group;
    partials.assign(needed, Partial());
    if (room.size() < needed * a.dim) room.resize(needed * a.dim);
    values = room.data();
  }

  // Task by task; `read_run(unit, run, partials, values)` reads what was picked.
  template <class ReadRun>
  void read(int64_t task, ReadRun read_run) {
    int unit = (int)(std::upper_bound(first.begin(), first.end(), task) - first.begin()) - 1;
    int index = (int)(task - first[unit]);
    float* at[HEADS_OF_KV];
    for (int h = 0; h < group; h++) at[h] = values + ((size_t)task * group + h) * a.dim;
    if (index < (int)pieces.size())
      read_for_row(a, pieces[index], row(unit), head(unit), &partials[task * group], at);
    else
      read_run(unit, index - (int)pieces.size(), &partials[task * group], at);
  }

  // What query head i of all rows gives.
  void merge_head(int64_t i) {
    float* out = a.out + i * a.dim;
    std::fill_n(out, a.dim, 0.0f);
    Partial total;
    for (int64_t task = first[i / group]; task < first[i / group + 1]; task++) {
      size_t from = task * group + i % group;
      merge(total, out, partials[from], values + from * a.dim, a.dim);
    }
    normalise(total, out, a.dim, a.lse ? a.lse + i : nullptr);
  }
};

}  // namespace
