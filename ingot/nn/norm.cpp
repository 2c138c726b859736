#include "ingot/nn/norm.h"

#include "ingot/nn/linear.h"
#include "ingot/ops/elementwise.h"

namespace ingot::nn {

Norm::Norm(NormKind kind, int64_t width, double eps, DType dtype, Device device, double gain_offset)
    : kind_(kind), eps_(eps), gain_offset_(kind == NormKind::rms ? gain_offset : 0) {
  if (kind != NormKind::none) {
    weight = parameter({width}, dtype, device, 1 - gain_offset_);
  }
  if (kind == NormKind::layer) {
    bias = parameter({width}, dtype, device);
  }
}

Tensor Norm::operator()(const Tensor& x) const {
  switch (kind_) {
    case NormKind::layer: return layer_norm(x, weight, bias, eps_);
    case NormKind::rms: return rms_norm(x, weight, eps_, gain_offset_);
    case NormKind::none: break;
  }
  return x;
}

NormedSum Norm::add(const Tensor& x, const Tensor& residual) const {
  switch (kind_) {
    case NormKind::layer: return add_layer_norm(x, residual, weight, bias, eps_);
    case NormKind::rms: return add_rms_norm(x, residual, weight, eps_, gain_offset_);
    case NormKind::none: break;
  }
  const Tensor sum = x + residual;
  return {sum, sum};
}

void Norm::visit(Visitor& v) {
  v("weight", weight, gain_offset_ == 0 ? Role::gain : Role::gain_difference);
  v("bias", bias, Role::bias);
}

}  // namespace ingot::nn
