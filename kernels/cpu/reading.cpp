// Reading a buffer with all threads, as fast as it can be read: whole lines, at one or several places of a run in turn.
#include "reading.h"

#include <omp.h>

#include <algorithm>

#include "simd.h"

namespace {

constexpr int64_t LINE = 64, RUN = 1 << 19;  // bytes

inline U line(const char* at) {
  U both = {};
  for (int64_t from = 0; from < LINE; from += (int64_t)sizeof(U)) {
    U some;
    std::memcpy(&some, at + from, sizeof some);
    both ^= some;
  }
  return both;
}

template <int PLACES>
U read_run(const char* from, int64_t bytes) {
  U found[PLACES] = {};
  int64_t apart = bytes / PLACES / LINE * LINE, at = 0;
  for (; at < apart; at += LINE)
    for (int place = 0; place < PLACES; place++) found[place] ^= line(from + place * apart + at);
  for (at = PLACES * apart; at < bytes; at += LINE) found[0] ^= line(from + at);
  for (int place = 1; place < PLACES; place++) found[0] ^= found[place];
  return found[0];
}

template <int PLACES>
void read_all(const LsReading& a) {
  const char* from = static_cast<const char*>(a.from);
  uint64_t found = 0;
#pragma omp parallel num_threads(a.threads)
  {
    U own = {};
#pragma omp for schedule(dynamic, 1)
    for (int64_t first = 0; first < a.bytes; first += RUN) own ^= read_run<PLACES>(from + first, std::min(RUN, a.bytes - first));
    uint64_t folded = 0;
    for (int lane = 0; lane < W; lane++) folded ^= (uint64_t)own[lane] << (32 * (lane % 2));
#pragma omp atomic
    found ^= folded;
  }
  *a.found = found;
}

}  // namespace

#define LONGSHELF_JOIN(a, b) a##b
#define LONGSHELF_NAME(isa) LONGSHELF_JOIN(reading_, isa)

void LONGSHELF_NAME(LONGSHELF_ISA)(const LsReading* call) {
  switch (call->places) {
    case 1: return read_all<1>(*call);
    case 2: return read_all<2>(*call);
    case 8: return read_all<8>(*call);
    default: return read_all<4>(*call);
  }
}
