#pragma once

#include "ingot/nn/module.h"
#include "ingot/ops/int8_linear.h"

namespace ingot::nn {

enum class Bias : bool { no, yes };

// y = x Wᵀ + b.   x: [..., In]   y: [..., Out]
class Linear : public Module {
 public:
  // Weight and bias start at 0 (see initialise.h).
  Linear(int64_t in, int64_t out, Bias bias, DType dtype, Device device, Role role = Role::matrix);

  virtual Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) override;

  // The weight [Out, In], decoded where it is kept in 8 bits.
  Tensor plain_weight(DType dtype) const;
  // From here on the weight is kept in 8 bits: for use, no longer for training, loading or saving.
  void to_int8();

  Tensor weight;     // [Out, In]; undefined after to_int8
  Int8Weight coded;  // defined after to_int8
  Tensor bias;       // [Out], or undefined

 private:
  Role role_;
};

// The results of several maps of one input; their backward sums the input's gradient in place.
TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps);

// Linear::to_int8 for every linear map in a module.
void to_int8(Module& module);

// A parameter of zeros (or `value`), counted as such.
Tensor parameter(const Shape& shape, DType dtype, Device device, double value = 0);

}  // namespace ingot::nn
