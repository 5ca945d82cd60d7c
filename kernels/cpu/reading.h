// Reading memory and nothing else: how fast that goes is what reading of keys and values is measured against.
#pragma once

#include <cstdint>

extern "C" {

struct LsReading {
  const void* from;
  int64_t bytes;    // a multiple of 64
  int32_t places;   // a run is read at so many places in turn: 1, 2, 4 or 8
  int32_t threads;
  uint64_t* found;  // out: depends on all that was read
};
}

typedef void (*ReadingFunction)(const LsReading*);
