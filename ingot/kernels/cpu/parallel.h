#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace ingot::kernels {

// How [0, count) is cut for `threads` workers: contiguous parts that differ by at most one grain.
struct Part {
  int64_t begin;
  int64_t end;
};
inline Part part_of(int64_t count, int64_t grain, int64_t worker, int64_t workers) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t begin = units * worker / workers * grain;
  const int64_t end = units * (worker + 1) / workers * grain;
  return {std::min(begin, count), std::min(end, count)};
}

// Runs f(begin, end, worker) over [0, count) on the OpenMP threads. The partition depends on count,
// grain and the number of threads alone, so sums made per part come out the same in every run.
// Parts are multiples of `grain`; work of a single grain runs on the caller. An exception in f is
// rethrown on the caller.
template <class F>
void parallel_parts(int64_t count, int64_t grain, F&& f) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t workers =
      omp_in_parallel() != 0 ? 1 : std::min<int64_t>(units, omp_get_max_threads());
  if (workers <= 1) {
    if (count > 0) {
      f(int64_t{0}, count, int64_t{0});
    }
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(static_cast<int>(workers))
  {
    const int64_t worker = omp_get_thread_num();
    const Part part = part_of(count, grain, worker, omp_get_num_threads());
    try {
      if (part.begin < part.end) {
        f(part.begin, part.end, worker);
      }
    } catch (...) {
#pragma omp critical(ingot_parallel_failure)
      failure = std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

// The same for work that does not care which worker does it: f(begin, end).
template <class F>
void parallel_for(int64_t count, int64_t grain, F&& f) {
  parallel_parts(count, grain, [&](int64_t begin, int64_t end, int64_t) { f(begin, end); });
}

// The most workers that parallel_parts uses: the number of partial sums to make room for.
inline int64_t workers() { return omp_get_max_threads(); }

}  // namespace ingot::kernels
