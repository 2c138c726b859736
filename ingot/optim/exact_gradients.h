#pragma once

#include <vector>

#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Gradients added up without regard to order (base/exact_sum.h): whatever the grouping of the same
// parts, the same bits. 16 bytes a parameter beside its gradient.
class ExactGradients {
 public:
  explicit ExactGradients(const TensorDict& parameters);

  void take();  // adds the gradients that backward() left in the parameters, and clears them
  void give();  // leaves the sums as the parameters' gradients; the sums are 0 again

 private:
  TensorDict parameters_;
  TensorList sums_;  // i64 [N, 2]; undefined where no gradient came yet
};

}  // namespace ingot
