// Attention over chosen keys, each with a log weight on top of its logit; `kernels/gathering.py` says what it means.
#pragma once

#include "attention.h"

extern "C" {

struct LsGather {
  LsAttend dense;            // the rows, and the blocks that are read whole
  const LsBlock* blocks;     // in order of position: what is chosen from
  const int32_t* ids;        // positions of the keys chosen by each row and KV head, one list behind the other
  const int64_t* offsets;    // [rows * kv_heads + 1]: where each list begins, and where the last one ends
  const float* log_weights;  // [group, length of the list] for each list, behind one another; -inf where a query head doesn't use the key
  int32_t block_count;
};
}

typedef void (*GatherFunction)(const LsGather*);
