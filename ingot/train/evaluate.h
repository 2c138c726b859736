#pragma once

#include <functional>
#include <map>
#include <string>

#include "ingot/nn/randomness.h"
#include "ingot/train/objective.h"

namespace ingot {

struct Evaluation {
  double loss = 0;  // mean over all targets, nats
  int64_t tokens = 0;
  double seconds = 0;
  std::map<std::string, double> metrics{};  // means
  double bytes_per_target = 1;              // that a token spells, on average
  double bits() const;                      // per byte: loss / ln 2 / bytes_per_target
  double perplexity() const;                // e^loss
};

// The mean of the objective over batches 0 … count − 1, made one at a time, without gradients or
// dropout. Throws Error(numeric) if it is not finite, Error(config) if no target counts.
Evaluation evaluate(const Objective& objective, int64_t count,
                    const std::function<Batch(int64_t)>& batch, Randomness& randomness);

}  // namespace ingot
