#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ingot::kernels {

// Runs f(begin, end) over [0, count) in chunks of `grain`, each taken by whichever OpenMP thread is
// free: cores that share memory or a machine with others do not go equally fast. Only for work
// whose results do not depend on how it is cut or who does it; for all else there is parallel.h. f
// must not throw.
template <class F>
void parallel_chunks(int64_t count, int64_t grain, F&& f) {
  const int64_t chunks = (count + grain - 1) / grain;
  const int64_t workers =
      omp_in_parallel() != 0 ? 1 : std::min<int64_t>(chunks, omp_get_max_threads());
  if (workers <= 1) {
    if (count > 0) {
      f(int64_t{0}, count);
    }
    return;
  }
  std::atomic<int64_t> next = 0;
#pragma omp parallel num_threads(static_cast<int>(workers))
  for (int64_t i = next++; i < chunks; i = next++) {
    f(i * grain, std::min((i + 1) * grain, count));
  }
}

}  // namespace ingot::kernels
