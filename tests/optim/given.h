#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/autograd/record.h"
#include "ingot/optim/optimizer.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::testing {

// A parameter with given values that collects a gradient.
inline Tensor parameter(const std::vector<double>& values, const Shape& shape, DType dtype) {
  Tensor p = copy_of(converted(tensor_of(values, shape), dtype));
  return require_grad(p);
}

// Gives p the gradient that a backward would have left.
inline void give(const Tensor& p, const std::vector<double>& values) {
  grad(p) = copy_of(converted(tensor_of(values, p.shape()), accumulator(p.dtype())));
}
inline void give(const Tensor& p, double value) {
  grad(p) = full(p.shape(), value, accumulator(p.dtype()), p.device());
}

inline TensorDict dict(const std::vector<std::pair<std::string, Tensor>>& entries) {
  TensorDict out;
  for (const auto& [name, tensor] : entries) {
    out.add(name, tensor);
  }
  return out;
}

// The elements in f64.
inline std::vector<double> numbers(const Tensor& x) {
  const Tensor wide = dense(converted(x, DType::f64));
  const auto values = wide.values<double>();
  return {values.begin(), values.end()};
}

inline const GroupRules decay_all = {{.pattern = "**", .learning_rate = {}, .decay = 1}};

}  // namespace ingot::testing
