#include "ingot/optim/sam.h"

#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/device/allocator.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"

namespace ingot {

SharpnessAscent::SharpnessAscent(Optimizer& optimizer, const SamConfig& config)
    : optimizer_(optimizer) {
  const NoGrad quiet;
  const PurposeScope scope(Purpose::optimizer);
  const TensorDict masters = optimizer.masters();
  double squares = 0;
  for (const auto& [name, p] : optimizer.parameters()) {
    if (grad(p).defined()) {
      const Tensor g = dense(grad(p));
      const Tensor& w = masters.at(name);
      const double norm = frobenius_norm(config.adaptive ? abs(w) * converted(g, w.dtype()) : g);
      squares += norm * norm;
    }
  }
  const double length = config.rho / (std::sqrt(squares) + 1e-12);
  for (const auto& [name, p] : optimizer.parameters()) {
    if (!grad(p).defined()) {
      continue;
    }
    const Tensor& w = masters.at(name);
    const Tensor g = converted(dense(grad(p)), w.dtype());
    const Tensor moved = w + length * (config.adaptive ? square(w) * g : g);
    if (!is_half(p.dtype())) {
      weights_.add(name, copy_of(w));
    }
    Tensor target = p;
    copy_into(target, moved);
    clear_grad(p);
  }
}

SharpnessAscent::~SharpnessAscent() {
  const TensorDict masters = optimizer_.masters();
  for (const auto& [name, p] : optimizer_.parameters()) {
    Tensor target = p;
    if (is_half(p.dtype())) {
      copy_into(target, masters.at(name));
    } else if (weights_.contains(name)) {
      copy_into(target, weights_.at(name));
    }
  }
}

}  // namespace ingot
