// Picks, at run time, the widest instruction set that both this library and this processor have.
#include "attention.h"
#include "bulk.h"
#include "gather.h"
#include "lsh.h"
#include "reading.h"
#include "sampled.h"
#include "weights.h"

#define LONGSHELF_DECLARE(isa)           \
  void attend_##isa(const LsAttend*);    \
  void sampled_##isa(const LsSampled*);  \
  void budgeted_##isa(const LsBudgeted*);\
  void gather_##isa(const LsGather*);    \
  void reading_##isa(const LsReading*);  \
  void lsh_##isa(const LsLsh*);          \
  void lsh_build_##isa(const LsLshBuild*); \
  void linear_##isa(const LsLinear*);    \
  void many_##isa(const LsMany*);        \
  void before_##isa(const LsBefore*);    \
  void after_##isa(const LsAfter*);      \
  void unpack_##isa(const LsUnpack*);    \
  void norm_##isa(const LsNorm*);        \
  void gate_##isa(const LsGate*);        \
  void heads_##isa(const LsHeads*);
LONGSHELF_DECLARE(baseline)
#if defined(__x86_64__)
LONGSHELF_DECLARE(avx2)
LONGSHELF_DECLARE(avx512)
LONGSHELF_DECLARE(avx512_bf16)
#endif

namespace {

struct Isa {
  const char* name;
  bool runs;
  AttendFunction attend;
  SampledFunction sampled;
  BudgetedFunction budgeted;
  GatherFunction gather;
  ReadingFunction reading;
  LshFunction lsh;
  LshBuildFunction lsh_build;
  LinearFunction linear;
  ManyFunction many;
  BeforeFunction before;
  AfterFunction after;
  UnpackFunction unpack;
  NormFunction norm;
  GateFunction gate;
  HeadsFunction heads;
};

#define LONGSHELF_ISA_ROW(isa, runs) \
  {#isa, runs, attend_##isa, sampled_##isa, budgeted_##isa, gather_##isa, reading_##isa, lsh_##isa, lsh_build_##isa, linear_##isa, many_##isa, \
   before_##isa, after_##isa, unpack_##isa, norm_##isa, gate_##isa, heads_##isa}

// From the plainest to the widest.
Isa* table(int* count) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static Isa all[] = {
      LONGSHELF_ISA_ROW(baseline, true),
      LONGSHELF_ISA_ROW(avx2, avx2),
      LONGSHELF_ISA_ROW(avx512, avx2 && avx512),
      LONGSHELF_ISA_ROW(avx512_bf16, avx2 && avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni")),
  };
#else
  static Isa all[] = {LONGSHELF_ISA_ROW(baseline, true)};
#endif
  *count = sizeof all / sizeof all[0];
  return all;
}

const Isa* chosen = nullptr;

const Isa* current() {
  if (!chosen) {
    int count;
    Isa* all = table(&count);
    for (int i = 0; i < count; i++)
      if (all[i].runs) chosen = &all[i];
  }
  return chosen;
}

}  // namespace

extern "C" {

int ls_abi(void) { return 11; }

const char* ls_isa(void) { return current()->name; }

// Name of the i-th instruction set that this processor runs, or null after the last.
const char* ls_isa_name(int index) {
  int count;
  Isa* all = table(&count);
  for (int i = 0; i < count; i++)
    if (all[i].runs && index-- == 0) return all[i].name;
  return nullptr;
}

// Use this instruction set from now on (tests, comparisons). Gives 0 if the processor can't.
int ls_use_isa(const char* name) {
  int count;
  Isa* all = table(&count);
  for (int i = 0; i < count; i++)
    if (all[i].runs && __builtin_strcmp(all[i].name, name) == 0) {
      chosen = &all[i];
      return 1;
    }
  return 0;
}

void ls_attend(const LsAttend* call) { current()->attend(call); }
void ls_sampled(const LsSampled* call) { current()->sampled(call); }
void ls_gather(const LsGather* call) { current()->gather(call); }
void ls_reading(const LsReading* call) { current()->reading(call); }
void ls_lsh(const LsLsh* call) { current()->lsh(call); }
void ls_lsh_build(const LsLshBuild* call) { current()->lsh_build(call); }
void ls_budgeted(const LsBudgeted* call) { current()->budgeted(call); }
void ls_linear(const LsLinear* call) { current()->linear(call); }
void ls_many(const LsMany* call) { current()->many(call); }
void ls_before(const LsBefore* call) { current()->before(call); }
void ls_after(const LsAfter* call) { current()->after(call); }
void ls_unpack(const LsUnpack* call) { current()->unpack(call); }
void ls_norm(const LsNorm* call) { current()->norm(call); }
void ls_gate(const LsGate* call) { current()->gate(call); }
void ls_heads(const LsHeads* call) { current()->heads(call); }
}
