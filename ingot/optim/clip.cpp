#include "ingot/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/magnitude.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

double largest_magnitude(const Tensor& x) {
  double most = 0;
  on_device(x.device(), [&](const auto& on) { kernels::largest_magnitude(on, x.view(), most); });
  return most;
}

}  // namespace

double gradient_norm(const TensorDict& parameters, NormKind kind) {
  double total = 0;
  for (const auto& [name, p] : parameters) {
    if (!grad(p).defined()) {
      continue;
    }
    const Tensor g = dense(grad(p));
    if (kind == NormKind::l2) {
      total += sum_of_squares(g);
    } else {
      const double most = largest_magnitude(g);
      total = std::isnan(total) || total > most ? total : most;
    }
  }
  return kind == NormKind::l2 ? std::sqrt(total) : total;
}

double clip_factor(double norm, double max_norm, ClipForm form) {
  check(std::isfinite(norm), ErrorKind::numeric, "clip: the gradient norm is not finite: got ",
        norm);
  check(max_norm >= 0, ErrorKind::argument, "clip: max_norm must be at least 0: got ", max_norm);
  const double guarded = form == ClipForm::torch ? norm + 1e-6 : norm;
  return max_norm == 0 || guarded <= max_norm ? 1 : max_norm / guarded;
}

std::vector<std::string> non_finite_gradients(const TensorDict& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, p] : parameters) {
    if (grad(p).defined() && !std::isfinite(sum_of_squares(dense(grad(p))))) {
      names.push_back(name);
    }
  }
  return names;
}

void scale_gradients(const TensorDict& parameters, double factor) {
  for (const auto& [name, p] : parameters) {
    if (Tensor& g = grad(p); g.defined()) {
      g = dense(g);
      on_device(g.device(),
                [&](const auto& on) { kernels::scale_in_place(on, factor, g.mutable_view()); });
    }
  }
}

void clip_by_value(const TensorDict& parameters, double limit) {
  check(limit >= 0, ErrorKind::argument, "clip: the limit must be at least 0: got ", limit);
  for (const auto& [name, p] : parameters) {
    if (Tensor& g = grad(p); g.defined()) {
      g = dense(g);
      on_device(g.device(),
                [&](const auto& on) { kernels::clamp_magnitude(on, limit, g.mutable_view()); });
    }
  }
}

}  // namespace ingot
