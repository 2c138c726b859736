#pragma once

#include <omp.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace ingot {

// Calls work(i) for i in [0, count) on all cores, in any order, and then take(result) on the caller
// in the order of i: what comes out does not depend on the number of threads. An exception of
// work(i) is thrown when its turn comes.
template <class Result, class Work, class Take>
void in_order(size_t count, Work&& work, Take&& take) {
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::optional<Result>> found(count);
  const auto n = static_cast<int64_t>(count);
#pragma omp parallel for schedule(dynamic, 4) if (omp_in_parallel() == 0 && count > 1)
  for (int64_t i = 0; i < n; ++i) {
    try {
      found[static_cast<size_t>(i)] = work(static_cast<size_t>(i));
    } catch (...) {
      failures[static_cast<size_t>(i)] = std::current_exception();
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (failures[i]) {
      std::rethrow_exception(failures[i]);
    }
    take(*std::move(found[i]));
  }
}

}  // namespace ingot
