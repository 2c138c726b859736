#include "ingot/nn/linear.h"

#include "ingot/ops/linear.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {

Tensor parameter(const Shape& shape, DType dtype, Device device, double value) {
  const PurposeScope scope(Purpose::parameters);
  return full(shape, value, dtype, device);
}

Linear::Linear(int64_t in, int64_t out, Bias with_bias, DType dtype, Device device, Role role)
    : weight(parameter({out, in}, dtype, device)), role_(role) {
  if (with_bias == Bias::yes) {
    bias = parameter({out}, dtype, device);
  }
}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight, bias); }

void Linear::visit(Visitor& v) {
  v("weight", weight, role_);
  v("bias", bias, Role::bias);
}

TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps) {
  TensorList weights;
  TensorList biases;
  for (const Linear* map : maps) {
    weights.push_back(map->weight);
    biases.push_back(map->bias);
  }
  return linears(x, weights, biases);
}

}  // namespace ingot::nn
