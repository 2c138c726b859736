#include "ingot/optim/exact_gradients.h"

#include "ingot/autograd/record.h"
#include "ingot/device/allocator.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/exact_sum.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {

ExactGradients::ExactGradients(const TensorDict& parameters)
    : parameters_(parameters), sums_(static_cast<size_t>(parameters.size())) {}

void ExactGradients::take() {
  const PurposeScope scope(Purpose::gradients);
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    Tensor& sum = sums_[i++];
    if (!grad(p).defined()) {
      continue;
    }
    const Tensor g = dense(grad(p));
    if (!sum.defined()) {
      sum = zeros({p.elements(), 2}, DType::i64, p.device());
    }
    on_device(g.device(),
              [&](const auto& on) { kernels::add_exactly(on, g.view(), sum.mutable_view()); });
    clear_grad(p);
  }
}

void ExactGradients::give() {
  const PurposeScope scope(Purpose::gradients);
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    Tensor& sum = sums_[i++];
    if (!sum.defined()) {
      continue;
    }
    Tensor g = empty(p.shape(), accumulator(p.dtype()), p.device());
    on_device(g.device(),
              [&](const auto& on) { kernels::exact_values(on, sum.view(), g.fresh_view()); });
    grad(p) = std::move(g);
    sum = Tensor();
  }
}

}  // namespace ingot
