// Sampled attention over blocks with sketches; `kernels/sampling.py` says what it means.
#pragma once

#include "attention.h"

extern "C" {

struct LsSketchBlock {
  LsBlock kv;              // read by every row
  const uint8_t* sketch;   // [kv_heads, groups of 16 keys, planes, 64]
  int64_t sketch_stride;   // bytes from one KV head to the next
  const uint16_t* certain; // [kv_heads, groups]: a bit for each key that is read whatever is drawn; may be null
};

struct LsSampled {
  LsAttend dense;               // the rows, and the blocks that are read whole; scores and blocks' rows apart from others are not for here
  const LsSketchBlock* blocks;  // in order of position
  const int64_t* open;          // [kv_heads]: keys of the blocks that are not certain
  const float* queries;         // [kv_heads, dim, coordinates]: see Projection
  const float* budgets;         // [rows, heads]: keys to draw, on the average
  float* thresholds;            // [rows, heads]: out, the logarithm of the weight from which on a key is certain
  int32_t* read;                // [rows, kv_heads, 2]: out, rows of K and V that were read, and keys used, summed over heads
  double* seconds;              // see stages.h: what threads spent in each stage is added; may be null
  int32_t block_count, fours, twos, ones;
  uint32_t seed;  // of this layer
};

// A draw that keeps a promise; `kernels/budgets.py` says what it means. The call's budgets are those of the pilot; without them its
// thresholds are given.
struct LsBudgeted {
  LsSampled draw;
  float tolerance, most, everything;
  uint32_t seed;  // of the pilot
};
}

typedef void (*SampledFunction)(const LsSampled*);
typedef void (*BudgetedFunction)(const LsBudgeted*);
