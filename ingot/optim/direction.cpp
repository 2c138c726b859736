#include "ingot/optim/direction.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/magnitude.h"
#include "ingot/kernels/optim.h"
#include "ingot/tensor/factories.h"

namespace ingot {

View rounded_view(Weight& p) { return p.rounded.defined() ? p.rounded.mutable_view() : View(); }

Tensor momentum_direction(const Tensor& g, Tensor& b, double scale, double momentum,
                          bool nesterov) {
  Tensor u = empty(g.shape(), g.dtype(), g.device());
  const kernels::MomentumNumbers numbers{.scale = scale,
                                         .hold = momentum,
                                         .take = 1 - momentum,
                                         .from_gradient = nesterov ? 1 - momentum : 0,
                                         .from_buffer = nesterov ? momentum : 1};
  on_device(g.device(), [&](const auto& on) {
    kernels::momentum(on, numbers, g.view(), b.mutable_view(), u.fresh_view());
  });
  return u;
}

void move_along(Weight& p, const Tensor& u, double rate, double keep) {
  const kernels::SgdNumbers numbers{.keep = keep, .rate = rate};
  on_device(p.full.device(), [&](const auto& on) {
    kernels::sgd(on, numbers, u.view(), p.full.mutable_view(), View(), rounded_view(p));
  });
}

void mix_into(Tensor& s, double beta, const Tensor& x) {
  const kernels::SgdNumbers numbers{.keep = beta, .rate = beta - 1};
  on_device(s.device(), [&](const auto& on) {
    kernels::sgd(on, numbers, x.view(), s.mutable_view(), View(), View());
  });
}

double sum_of_squares(const Tensor& x) {
  double total = 0;
  on_device(x.device(), [&](const auto& on) { kernels::sum_of_squares(on, x.view(), total); });
  return total;
}

double frobenius_norm(const Tensor& x) { return std::sqrt(sum_of_squares(x)); }

double root_mean_square(const Tensor& x) {
  return x.elements() == 0 ? 0 : frobenius_norm(x) / std::sqrt(static_cast<double>(x.elements()));
}

}  // namespace ingot
