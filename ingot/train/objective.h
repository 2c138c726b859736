#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ingot/data/batch.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// What an objective makes of a micro-batch: a sum and how many things it sums, kept apart so that
// one division, at the optimizer step and over all micro-batches and ranks, gives the mean. Any
// split of a batch then has the same gradient.
struct Loss {
  Tensor sum;                             // shape [], with history
  double count = 0;                       // tokens (or rows) in the sum
  std::map<std::string, double> metrics;  // further sums over the same count, by name
};

using Objective = std::function<Loss(const Batch&)>;

}  // namespace ingot
