// Hash tables of keys: building them, and attention over the keys that meet a query in two of them; `kernels/lsh.py` says what it means.
#pragma once

#include "attention.h"

extern "C" {

struct LsLshBuild {
  const LsBlock* blocks;  // of one layer, behind one another
  const float* panels;    // [(tables * bits + 15) / 16, dim, 16]: the directions, those beyond the last one 0
  const float* centres;   // [kv_heads, dim]
  uint16_t* codes;        // [kv_heads, tables, keys]: for the work
  uint16_t* starts;       // [kv_heads, tables, 2^bits + 1]: out
  uint16_t* ids;          // [kv_heads, tables, keys]: out
  float* norms;           // [kv_heads, keys]: out
  int32_t block_count, kv_heads, dim, keys, bits, tables, threads;
};

// One index and the blocks of its keys; every row reads it.
struct LsIndex {
  const LsBlock* blocks;
  const float* centres;
  const float* norms;
  const uint16_t* starts;
  const uint16_t* ids;
  const uint16_t* certain;  // [kv_heads, groups of 16 keys]: a bit for each key that is read whatever is met; may be null
  int32_t block_count, keys;
};

struct LsLsh {
  LsAttend dense;          // the rows, and the blocks that are read whole
  const LsIndex* indexes;  // in order of position
  const float* panels;
  int32_t* read;           // [rows, kv_heads, 3]: out, rows of K and V read, keys used summed over heads, bytes of indexes read
  int32_t index_count, bits, tables;
};
}

typedef void (*LshBuildFunction)(const LsLshBuild*);
typedef void (*LshFunction)(const LsLsh*);
