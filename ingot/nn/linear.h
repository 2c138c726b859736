#pragma once

#include <functional>
#include <memory>

#include "ingot/nn/module.h"
#include "ingot/ops/int8_linear.h"

namespace ingot::nn {

enum class Bias : bool { no, yes };

// What the operands of a map's three products are rounded to; each is given with its history.
struct ProductRounding {
  std::function<Tensor(const Tensor&)> input;   // x, in y and dW
  std::function<Tensor(const Tensor&)> weight;  // W, in y and dx
  std::function<Tensor(const Tensor&)>
      output_gradient;  // takes y, returns it: rounds dy, in dx, dW
};

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

  Tensor weight;                                    // [Out, In]; undefined after to_int8
  Int8Weight coded;                                 // defined after to_int8
  Tensor bias;                                      // [Out], or undefined
  std::shared_ptr<const ProductRounding> rounding;  // none: products of what there is

 private:
  Role role_;
};

// The results of several maps of one input; their backward sums the input's gradient in place.
TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps);

// Rounds the operands of every linear map in a module from now on.
void round_products(Module& module, std::shared_ptr<const ProductRounding> rounding);

// Linear::to_int8 for every linear map in a module.
void to_int8(Module& module);

// A parameter of zeros (or `value`), counted as such.
Tensor parameter(const Shape& shape, DType dtype, Device device, double value = 0);

}  // namespace ingot::nn
