#include "ingot/nn/linear.h"

#include <algorithm>
#include <utility>

#include "ingot/ops/linear.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

class LinearCollector : public Visitor {
 public:
  std::vector<std::pair<std::string, Linear*>> maps;

 protected:
  void on_parameter(const std::string&, Tensor&, Role) override {}
  void on_module(const std::string& path, Module& module) override {
    if (auto* map = dynamic_cast<Linear*>(&module)) {
      maps.emplace_back(path, map);
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
  if (adapters.empty()) {
    return unadapted(x);
  }
  Tensor input = x;
  for (const auto& adapter : adapters) {
    input = adapter->active() ? adapter->before(input) : input;
  }
  return adapted(input, unadapted(input));
}

Tensor Linear::unadapted(const Tensor& x, Bias with_bias) const {
  const Tensor added = with_bias == Bias::yes ? bias : Tensor();
  if (stored) {
    return coded_linear(x, stored, added);
  }
  if (rounding) {
    return rounding->output_gradient(linear(rounding->input(x), rounding->weight(weight), added));
  }
  return coded.defined() ? int8_linear(x, coded, added) : linear(x, weight, added);
}

Tensor Linear::adapted(const Tensor& x, Tensor y) const {
  for (const auto& adapter : adapters) {
    if (adapter->active()) {
      y = adapter->after(x, std::move(y), *this);
    }
  }
  return y;
}

bool Linear::changes_input() const {
  return std::ranges::any_of(
      adapters, [](const auto& adapter) { return adapter->active() && adapter->changes_input(); });
}

int64_t Linear::in_features() const {
  return stored ? stored->columns() : coded.defined() ? coded.codes.size(1) : weight.size(1);
}

int64_t Linear::out_features() const {
  return stored ? stored->rows() : coded.defined() ? coded.codes.size(0) : weight.size(0);
}

DType Linear::dtype() const {
  return weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : DType::f32;
}

Tensor Linear::base_weight(DType dtype) const {
  if (stored) {
    return stored->decoded(0, stored->rows(), dtype);
  }
  return coded.defined() ? dense_weight(coded, dtype) : weight;
}

Tensor Linear::plain_weight(DType dtype) const {
  LinearAdapter::Merged all{base_weight(dtype), bias};
  for (const auto& adapter : adapters) {
    if (adapter->active()) {
      all = adapter->merged({converted(all.weight, accumulator(dtype)), all.bias});
    }
  }
  return cast(all.weight, dtype);
}

void Linear::to_int8() {
  if (!coded.defined() && !stored) {
    const PurposeScope scope(Purpose::parameters);
    coded = int8_weight(weight);
    weight = Tensor();
  }
}

void Linear::to_coded(std::shared_ptr<const CodedWeight> fewer_bits) {
  check(fewer_bits->rows() == out_features() && fewer_bits->columns() == in_features(),
        ErrorKind::shape, "to_coded: the codes are not of this weight: they have [",
        fewer_bits->rows(), ", ", fewer_bits->columns(), "], the map has [", out_features(), ", ",
        in_features(), "]");
  stored = std::move(fewer_bits);
  weight = Tensor();
  coded = {};
}

void Linear::visit(Visitor& v) {
  v("weight", weight, role_);
  v("bias", bias, Role::bias);
}

TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps) {
  const bool apart = std::ranges::any_of(maps, [](const Linear* map) {
    return map->coded.defined() || map->stored != nullptr || map->rounding != nullptr ||
           map->changes_input();
  });
  TensorList weights, biases, ys;
  for (const Linear* map : maps) {
    if (apart) {
      ys.push_back((*map)(x));
    } else {
      weights.push_back(map->weight);
      biases.push_back(map->bias);
    }
  }
  if (apart) {
    return ys;
  }
  ys = linears(x, weights, biases);
  size_t i = 0;
  for (const Linear* map : maps) {
    ys[i] = map->adapted(x, std::move(ys[i]));
    ++i;
  }
  return ys;
}

std::vector<std::pair<std::string, Linear*>> linear_maps(Module& module) {
  LinearCollector collector;
  module.visit(collector);
  return std::move(collector.maps);
}

void round_products(Module& module, std::shared_ptr<const ProductRounding> rounding) {
  ProductRounder rounder(std::move(rounding));
  module.visit(rounder);
}

void to_int8(Module& module) {
  for (const auto& [path, map] : linear_maps(module)) {
    map->to_int8();
  }
}

}  // namespace ingot::nn
