#include "ingot/nn/linear.h"

#include <utility>

#include "ingot/ops/linear.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

class Int8Converter : public Visitor {
 protected:
  void on_parameter(const std::string&, Tensor&, Role) override {}
  void on_module(const std::string&, Module& module) override {
    if (auto* map = dynamic_cast<Linear*>(&module)) {
      map->to_int8();
    }
  }
};

class ProductRounder : public Visitor {
 public:
  explicit ProductRounder(std::shared_ptr<const ProductRounding> rounding)
      : rounding_(std::move(rounding)) {}

 protected:
  void on_parameter(const std::string&, Tensor&, Role) override {}
  void on_module(const std::string&, Module& module) override {
    if (auto* map = dynamic_cast<Linear*>(&module)) {
      map->rounding = rounding_;
    }
  }

 private:
  std::shared_ptr<const ProductRounding> rounding_;
};

}  // namespace

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

Tensor Linear::operator()(const Tensor& x) const {
  if (rounding) {
    return rounding->output_gradient(linear(rounding->input(x), rounding->weight(weight), bias));
  }
  return coded.defined() ? int8_linear(x, coded, bias) : linear(x, weight, bias);
}

Tensor Linear::plain_weight(DType dtype) const {
  return coded.defined() ? dense_weight(coded, dtype) : weight;
}

void Linear::to_int8() {
  if (!coded.defined()) {
    const PurposeScope scope(Purpose::parameters);
    coded = int8_weight(weight);
    weight = Tensor();
  }
}

void Linear::visit(Visitor& v) {
  v("weight", weight, role_);
  v("bias", bias, Role::bias);
}

TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps) {
  TensorList weights;
  TensorList biases;
  for (const Linear* map : maps) {
    if (map->coded.defined() || map->rounding) {
      TensorList ys;
      for (const Linear* each : maps) {
        ys.push_back((*each)(x));
      }
      return ys;
    }
    weights.push_back(map->weight);
    biases.push_back(map->bias);
  }
  return linears(x, weights, biases);
}

void round_products(Module& module, std::shared_ptr<const ProductRounding> rounding) {
  ProductRounder rounder(std::move(rounding));
  module.visit(rounder);
}

void to_int8(Module& module) {
  Int8Converter converter;
  module.visit(converter);
}

}  // namespace ingot::nn
