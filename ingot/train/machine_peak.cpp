#include "ingot/train/machine_peak.h"

#include <algorithm>
#include <chrono>

#include "ingot/device/on_device.h"
#include "ingot/kernels/matmul.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {

double measured_peak_flops(DType dtype) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t size = 1536;
  const PurposeScope scope(Purpose::workspace);
  const Tensor a = full({size, size}, 0.5, dtype);
  const Tensor b = full({size, size}, 0.25, dtype);
  Tensor y = empty({size, size}, dtype);
  double best_seconds = 1e9;
  const Clock::time_point start = Clock::now();
  for (int64_t run = 0; run < 3 || Clock::now() - start < std::chrono::milliseconds(300); ++run) {
    const Clock::time_point before = Clock::now();
    kernels::matmul(Cpu{}, a.view(), transposed(b, 0, 1).view(), y.fresh_view());
    best_seconds =
        std::min(best_seconds, std::chrono::duration<double>(Clock::now() - before).count());
  }
  return 2.0 * size * size * size / best_seconds;
}

}  // namespace ingot
