#include "ingot/optim/moments.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"

namespace ingot {

std::vector<Slot> moment_slots(const Weight& p, bool amsgrad) {
  std::vector<Slot> slots = {{"m", p.full.shape(), p.full.dtype()},
                             {"v", p.full.shape(), p.full.dtype()}};
  if (amsgrad) {
    slots.push_back({"most", p.full.shape(), p.full.dtype()});
  }
  return slots;
}

void moment_step(Weight& p, const Tensor& g, TensorList& slots, const Step& step,
                 const MomentNumbers& numbers, double l2, double keep) {
  const auto t = static_cast<double>(step.t);
  const double first = numbers.bias_correction ? 1 - std::pow(numbers.beta1, t) : 1;
  const double root = numbers.bias_correction ? std::sqrt(1 - std::pow(numbers.beta2, t)) : 1;
  const double rate = step.learning_rate / first;
  const kernels::AdamNumbers all{.scale = step.scale,
                                 .l2 = l2,
                                 .beta1 = numbers.beta1,
                                 .beta2 = numbers.beta2,
                                 .keep = keep,
                                 .rate = numbers.eps_hat ? rate * root : rate,
                                 .root_scale = numbers.eps_hat ? 1 : 1 / root,
                                 .eps = numbers.eps};
  on_device(p.full.device(), [&](const auto& on) {
    kernels::adam(on, all, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                  slots[1].mutable_view(), numbers.amsgrad ? slots[2].mutable_view() : View(),
                  p.rounded.defined() ? p.rounded.mutable_view() : View());
  });
}

}  // namespace ingot
