#include "ingot/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Function = std::function<TensorList(const TensorList&)>;

double dot(const Tensor& a, const Tensor& b) {
  const Tensor da = dense(a);
  const Tensor db = dense(b);
  const auto va = da.values<double>();
  const auto vb = db.values<double>();
  double sum = 0;
  for (size_t i = 0; i < va.size(); ++i) {
    sum += va[i] * vb[i];
  }
  return sum;
}

Tensor random_like(const Tensor& x, const RandomKey& key) {
  return normal(x.shape(), 0, 1, key, DType::f64);
}

// x + h u
Tensor moved_along(const Tensor& x, double h, const Tensor& u) {
  Tensor y = copy_of(x);
  const auto direction = u.values<double>();
  auto values = y.mutable_values<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += h * direction[i];
  }
  return y;
}

double projected(const Function& f, const TensorList& xs, const TensorList& weights) {
  const NoGrad quiet;
  const TensorList ys = f(xs);
  double sum = 0;
  for (size_t i = 0; i < ys.size(); ++i) {
    sum += is_float(ys[i].dtype()) ? dot(ys[i], weights[i]) : 0;
  }
  return sum;
}

TensorList projection(const TensorList& ys, uint64_t seed) {
  TensorList weights;
  for (size_t i = 0; i < ys.size(); ++i) {
    weights.push_back(random_like(ys[i], {seed, 0, i}));
  }
  return weights;
}

TensorList analytic(const Function& f, const TensorList& xs, uint64_t seed) {
  TensorList leaves;
  TensorList wanted;
  for (const Tensor& x : xs) {
    leaves.push_back(detach(x));
    if (is_float(x.dtype())) {
      wanted.push_back(require_grad(leaves.back()));
    }
  }
  const TensorList ys = f(leaves);
  const TensorList weights = projection(ys, seed);
  TensorList recorded;
  TensorList dys;
  for (size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].node() != nullptr) {
      recorded.push_back(ys[i]);
      dys.push_back(weights[i]);
    }
  }
  return gradients(recorded, wanted, dys);
}

}  // namespace

std::string gradcheck(const Function& f, const TensorList& xs, const GradcheckOptions& options) {
  for (const Tensor& x : xs) {
    check(!is_float(x.dtype()) || x.dtype() == DType::f64, ErrorKind::dtype,
          "gradcheck: inputs must be f64: got ", x.dtype());
  }
  const TensorList grads = analytic(f, xs, options.seed);
  const TensorList weights = [&] {
    const NoGrad quiet;
    return projection(f(xs), options.seed);
  }();
  size_t next = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!is_float(xs[i].dtype())) {
      continue;
    }
    const Tensor& gradient = grads[next++];
    for (int64_t direction = 0; direction < options.directions; ++direction) {
      const Tensor u = random_like(xs[i], {options.seed, 1 + i, static_cast<uint64_t>(direction)});
      TensorList up = xs;
      TensorList down = xs;
      up[i] = moved_along(xs[i], options.step, u);
      down[i] = moved_along(xs[i], -options.step, u);
      const double numeric =
          (projected(f, up, weights) - projected(f, down, weights)) / (2 * options.step);
      const double computed = gradient.defined() ? dot(gradient, u) : 0;
      const double error = std::abs(computed - numeric) / std::max(1.0, std::abs(numeric));
      if (!(error <= options.tolerance)) {
        return concat("input ", i, ": analytic ", computed, ", numeric ", numeric, ", error ",
                      error);
      }
    }
  }
  return "";
}

std::string gradgradcheck(const Function& f, const TensorList& xs,
                          const GradcheckOptions& options) {
  const Function gradient = [&](const TensorList& at) {
    const WithGrad recorded;
    TensorList leaves = at;
    TensorList wanted;
    for (Tensor& x : leaves) {
      if (is_float(x.dtype())) {
        wanted.push_back(x.node() == nullptr ? require_grad(x) : x);
      }
    }
    const TensorList ys = f(leaves);
    TensorList grads = gradients(ys, wanted, projection(ys, options.seed + 1), CreateGraph::yes);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) {
        grads[i] = zeros(wanted[i].shape(), DType::f64);
      }
    }
    return grads;
  };
  return gradcheck(gradient, xs, options);
}

}  // namespace ingot
