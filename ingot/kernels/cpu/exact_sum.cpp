#include "ingot/kernels/exact_sum.h"

#include "ingot/base/dtype.h"
#include "ingot/base/exact_sum.h"
#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {
namespace {

constexpr int64_t grain = 4096;  // elements

}  // namespace

void add_exactly(const Cpu&, const ConstView& x, const View& sums) {
  auto* to = static_cast<ExactSum*>(sums.data);
  visit_float(x.dtype, "exact sum", [&]<class T>() {
    if constexpr (std::floating_point<T>) {
      const auto* from = static_cast<const T*>(x.data);
      parallel_for(x.shape.elements(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          ingot::add_exactly(to[i], from[i]);
        }
      });
    }
  });
}

void exact_values(const Cpu&, const ConstView& sums, const View& y) {
  const auto* from = static_cast<const ExactSum*>(sums.data);
  visit_float(y.dtype, "exact sum", [&]<class T>() {
    if constexpr (std::floating_point<T>) {
      auto* to = static_cast<T*>(y.data);
      parallel_for(y.shape.elements(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          to[i] = static_cast<T>(value_of(from[i]));
        }
      });
    }
  });
}

}  // namespace ingot::kernels
