#include "ingot/train/machine_peak.h"

#include <algorithm>
#include <chrono>

#include "ingot/device/on_device.h"
#include "ingot/kernels/magnitude.h"
#include "ingot/kernels/matmul.h"
#include "ingot/kernels/optim.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// The fastest of several runs within about `most_seconds`, at least three.
template <class F>
double best_seconds(double most_seconds, F&& work) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point start = Clock::now();
  double best = 1e9;
  for (int64_t run = 0; run < 3 || since(start) < most_seconds; ++run) {
    const Clock::time_point before = Clock::now();
    work();
    best = std::min(best, since(before));
  }
  return best;
}

}  // namespace

double measured_peak_flops(DType dtype) {
  constexpr int64_t size = 1536;
  const PurposeScope scope(Purpose::workspace);
  const Tensor a = full({size, size}, 0.5, dtype);
  const Tensor b = full({size, size}, 0.25, dtype);
  Tensor y = empty({size, size}, dtype);
  const double seconds = best_seconds(
      0.3, [&] { kernels::matmul(Cpu{}, a.view(), transposed(b, 0, 1).view(), y.fresh_view()); });
  return 2.0 * size * size * size / seconds;
}

MemoryBandwidth measured_bandwidth() {
  const PurposeScope scope(Purpose::workspace);
  Tensor x = full({int64_t{128} << 20}, 1, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  double total = 0;
  MemoryBandwidth out;
  out.read = bytes / best_seconds(0.15, [&] { kernels::sum_of_squares(Cpu{}, x.view(), total); });
  out.update =
      2 * bytes / best_seconds(0.15, [&] { kernels::scale_in_place(Cpu{}, 1, x.mutable_view()); });
  return out;
}

}  // namespace ingot
