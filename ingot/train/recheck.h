#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ingot/optim/optimizer.h"

namespace ingot {

// Guards against processors and memory that compute wrongly without saying so: Dixit et al. 2021,
// "Silent data corruptions at scale", arXiv:2102.11245; Hochschild et al. 2021, "Cores that don't
// count".

using NamedHashes = std::vector<std::pair<std::string, std::string>>;  // XXH3-128

// Of every gradient that there is.
NamedHashes gradient_hashes(const TensorDict& parameters);

// Throws Error(numeric) where a step's second computation differs from its first, naming the first
// parameter whose gradient does, or the loss.
void check_recomputed(int64_t step, double first_loss, double second_loss, const NamedHashes& first,
                      const NamedHashes& second);

// The weights and the optimizer's state as an update left them. Costs reading them all, twice.
class Seal {
 public:
  Seal(int64_t step, const Optimizer& optimizer);

  int64_t step() const { return step_; }
  // Throws Error(numeric) naming the first tensor that is not as it was.
  void check_unbroken(const Optimizer& optimizer) const;

 private:
  int64_t step_;
  NamedHashes hashes_;
};

}  // namespace ingot
