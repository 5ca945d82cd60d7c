// The C interface of the native library; `kernels/reference.py` says what each function means.
#pragma once

#include <cstdint>

extern "C" {

// A run of keys and values of one layer, read in place. Strides count elements; token rows are contiguous.
struct LsBlock {
  const void* k;         // [kv_heads, length, dim]
  const void* v;         // like k
  int64_t head_stride;   // from one KV head to the next
  int64_t token_stride;  // from one token to the next
  int64_t key_offset;    // where this block's keys stand in `scores`
  int32_t length;        // tokens
  int32_t position;      // position of the first token in its sequence
  int32_t row_begin;     // the packed rows that read this block: [row_begin, row_end)
  int32_t row_end;
  int32_t dtype;         // 0: bfloat16, 1: float32
};

struct LsAttend {
  const float* q;            // [rows, heads, dim]
  const int32_t* positions;  // [rows]: a row sees keys at positions <= its own and, with a window, > its own - window
  const LsBlock* blocks;     // in order of position for each row
  float* out;                // [rows, heads, dim]
  float* lse;                // [rows, heads]: log of the softmax denominator, -inf where a row saw nothing; may be null
  float* scores;             // [score groups, kv_heads, keys]: to a group, the probabilities of its rows summed over a KV head's query
                             // heads are added; may be null
  const int32_t* score_of;   // [rows]: the score group of a row, -1: none
  int64_t keys;              // length of a row of `scores`
  int32_t rows, heads, kv_heads, dim, block_count, threads;
  float scale;
  float softcap;   // of logits: softcap * tanh(logit / softcap); 0: none
  int32_t window;  // 0: none
};
}

// Implemented once for each instruction set.
typedef void (*AttendFunction)(const LsAttend*);
