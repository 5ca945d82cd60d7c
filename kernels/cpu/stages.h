// Where the time of sampled attention goes, where someone wants to know: seconds that each thread spends in a stage.
#pragma once

#include <omp.h>

namespace {

enum Stage { PROJECT, THRESHOLD, WHOLE, SCAN, GATHER, MERGE };  // in the order of `kernels.cpu.sampled.STAGES`

// One thread's; without `seconds` it does nothing. Waiting for other threads belongs to no stage.
class StageClock {
 public:
  explicit StageClock(double* seconds) : seconds(seconds) { restart(); }

  void restart() {
    if (seconds) since = omp_get_wtime();
  }

  // What was done since the last call is of this stage.
  void ended(Stage stage) {
    if (!seconds) return;
    double now = omp_get_wtime(), spent = now - since;
#pragma omp atomic
    seconds[stage] += spent;
    since = now;
  }

 private:
  double* seconds;
  double since = 0;
};

}  // namespace
