#include "ingot/peft/dora.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"

namespace ingot::peft {
namespace {

Tensor row_squares(const Tensor& w) { return sum(square(w), -1); }

}  // namespace

Dora::Dora(const nn::Linear& map, const LoraOptions& options, const AdapterSeed& seed, DType dtype,
           Device device, std::shared_ptr<const AdapterState> state, bool whole_gradient)
    : Lora(map, options, seed, dtype, device, std::move(state)), whole_gradient_(whole_gradient) {
  const NoGrad quiet;
  const PurposeScope scope(Purpose::parameters);
  squares_ = row_squares(converted(detach(map.plain_weight(dtype)), accumulator(dtype)));
  magnitude = sqrt(squares_);
}

Tensor Dora::norms(const nn::Linear& map) const {
  const DType wide = squares_.dtype();
  const double s = weighted_scaling();
  const Tensor A = cast(a, wide);
  const Tensor B = cast(b, wide);
  const Tensor wa = cast(map.unadapted(a, nn::Bias::no), wide);  // [r, Out]: A Wᵀ
  const Tensor cross = sum(B * transpose(wa), -1);
  const Tensor own = sum(matmul(B, matmul(A, transpose(A))) * B, -1);
  return sqrt(squares_ + cross * (2 * s) + own * (s * s));
}

Tensor Dora::after(const Tensor& x, Tensor y, const nn::Linear& map) const {
  Tensor n;
  if (whole_gradient_) {
    n = norms(map);
  } else {
    const NoGrad quiet;
    n = norms(map);
  }
  Tensor v = map.bias.defined() ? y - map.bias : std::move(y);
  v = add_linear(std::move(v), linear(dropped(x), a) * weighted_scaling(), b);
  v = v * cast(magnitude / n, x.dtype());
  return map.bias.defined() ? v + map.bias : v;
}

Adapter::Merged Dora::merged(const Merged& map) const {
  const Tensor v = Lora::merged(map).weight;
  const Tensor factor = cast(magnitude, v.dtype()) / sqrt(row_squares(v));
  return {v * unsqueeze(factor, 1), map.bias};
}

void Dora::visit(nn::Visitor& v) {
  Lora::visit(v);
  v("magnitude", magnitude, nn::Role::gain);
}

}  // namespace ingot::peft
