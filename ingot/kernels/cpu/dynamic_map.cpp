#include <algorithm>
#include <array>
#include <cmath>

#include "ingot/kernels/optim_8bit.h"

namespace ingot::kernels {
namespace {

float rounded(double x) { return static_cast<float>(x); }

// Point k of the n + 1 that divide [0.1, 1] into n, as PyTorch's linspace has it on a processor
// with vectors of eight floats: whole pairs of vectors from their first element, the rest one by
// one, the first half counted from 0.1 and the second from 1.
float point(int64_t k, int64_t n) {
  const float start = 0.1F;
  const float step = rounded((1.0 - start) / static_cast<double>(n));
  const int64_t whole = (n + 1) / 16 * 16;
  const int64_t first = k < whole ? k / 8 * 8 : k;
  const double from = first < (n + 1) / 2 ? start + double{step} * static_cast<double>(first)
                                          : 1.0 - double{step} * static_cast<double>(n - first);
  return rounded(double{rounded(from)} + rounded(double{step} * static_cast<double>(k - first)));
}

std::array<float, 256> make_map(bool is_signed) {
  std::array<float, 256> map = {};
  size_t next = 0;
  for (int i = 0; i < 7; ++i) {
    const int64_t n = int64_t{1} << (is_signed ? i : i + 1);
    const float scale = rounded(std::pow(10.0, i - 6));
    for (int64_t k = 0; k < n; ++k) {
      const float middle = rounded(double{rounded(double{point(k, n)} + point(k + 1, n))} / 2);
      const float value = rounded(double{scale} * middle);
      map[next++] = value;
      if (is_signed) {
        map[next++] = -value;
      }
    }
  }
  map[next++] = 0;
  map[next] = 1;
  std::sort(map.begin(), map.end());
  return map;
}

}  // namespace

const float* dynamic_map(bool is_signed) {
  static const std::array<float, 256> with_sign = make_map(true);
  static const std::array<float, 256> without = make_map(false);
  return is_signed ? with_sign.data() : without.data();
}

}  // namespace ingot::kernels
