#pragma once

#include "ingot/base/describe.h"
#include "ingot/optim/moments.h"

namespace ingot {

// AdamW for the parameters that a rule of matrices does not take: embeddings, head, vectors.
struct AuxAdamW {
  double lr = 1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;

  template <class V>
  void describe(V& v) {
    v("aux_lr", lr, at_least(0),
      "rate of what AdamW updates (embeddings, head, vectors), as a multiple of lr");
    v("aux_beta1", beta1, half_open(0, 1), "AdamW's decay of the first moment");
    v("aux_beta2", beta2, half_open(0, 1), "AdamW's decay of the second moment");
    v("aux_eps", eps, at_least(0), "AdamW's addition to the root of the second moment");
  }

  // An update with the weight decay `decay`; `slots` are moment_slots(p, false).
  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step, double decay) const {
    Step aux = step;
    aux.learning_rate *= lr;
    moment_step(p, g, slots, aux, {.beta1 = beta1, .beta2 = beta2, .eps = eps}, 0,
                1 - aux.learning_rate * decay * step.decay);
  }
};

// The factor of an orthogonal update of an M × N matrix. "keller": √max(1, M/N). "moonshot":
// 0.2·√max(M, N), which makes its root mean square AdamW's, about 0.2. "none": 1.
double orthogonal_scale(const std::string& form, const Shape& shape);

}  // namespace ingot
