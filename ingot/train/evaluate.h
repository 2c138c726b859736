#pragma once

#include <vector>

#include "ingot/nn/randomness.h"
#include "ingot/train/objective.h"

namespace ingot {

struct Evaluation {
  double loss = 0;   // mean over all targets, nats
  int64_t tokens = 0;
  double seconds = 0;
  double bits() const;        // per target: loss / ln 2; bits per byte where tokens are bytes
  double perplexity() const;  // e^loss
};

// The mean of the objective over batches, without gradients or dropout. Throws Error(numeric) if it is not finite.
Evaluation evaluate(const Objective& objective, const std::vector<Batch>& batches, Randomness& randomness);

}  // namespace ingot
