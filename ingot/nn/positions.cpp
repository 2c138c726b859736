#include "ingot/nn/positions.h"

#include <bit>
#include <cmath>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {

Tensor sinusoidal_table(const Tensor& positions, int64_t width, DType dtype) {
  check(width % 2 == 0, ErrorKind::argument, "sinusoidal_table: width must be even: got ", width);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < width; i += 2) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width)));
  }
  const Tensor rates = moved(tensor_of(frequencies, {width / 2}), positions.device());
  const Tensor angles = unsqueeze(converted(positions, DType::f64), -1) * rates;  // [..., D/2]
  const Tensor pairs = stack({sin(angles), cos(angles)}, -1);                     // [..., D/2, 2]
  Shape shape = positions.shape();
  shape.push_back(width);
  return converted(reshape(pairs, shape), dtype);
}

Tensor alibi_slopes(int64_t heads, Device device) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t h = 1; h <= power; ++h) {
    slopes.push_back(std::exp2(-8.0F * static_cast<float>(h) / static_cast<float>(power)));
  }
  for (int64_t h = 1; static_cast<int64_t>(slopes.size()) < heads; h += 2) {
    slopes.push_back(std::exp2(-4.0F * static_cast<float>(h) / static_cast<float>(power)));
  }
  return moved(tensor_of(slopes, {heads}), device);
}

}  // namespace ingot::nn
