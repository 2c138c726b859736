#include "ingot/kernels/dropout.h"

#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {

void dropout(const Cpu&, const ConstView& x, double p, const RandomKey& key, const View& y) {
  const Philox random(key);
  const auto threshold = static_cast<float>(p);
  visit_float(x.dtype, "dropout", [&]<class T>() {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* in = x.as<T>();
    T* out = y.as<T>();
    const Real scale = p < 1 ? static_cast<Real>(1 / (1 - p)) : Real(0);
    const int64_t count = x.elements();
    parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += 4) {  // parts begin at multiples of 4096: whole blocks
        const std::array<float, 4> draws = random.uniform4(static_cast<uint64_t>(i / 4));
        for (int64_t lane = 0; lane < 4 && i + lane < end; ++lane) {
          const Real kept = draws[static_cast<size_t>(lane)] >= threshold ? scale : Real(0);
          out[i + lane] = static_cast<T>(static_cast<Real>(in[i + lane]) * kept);
        }
      }
    });
  });
}

}  // namespace ingot::kernels
