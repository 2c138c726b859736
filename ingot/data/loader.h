#pragma once

#include <memory>

#include "ingot/data/batch.h"
#include "ingot/data/dataset.h"

namespace ingot {

// How one optimizer step's samples are divided: micro-batches on each rank, rows in each.
struct BatchShape {
  int64_t rows = 1;        // B: samples in one micro-batch
  int64_t accumulate = 1;  // micro-batches a rank computes for one step
  int64_t ranks = 1;
  int64_t rank = 0;

  int64_t samples_per_step() const { return rows * accumulate * ranks; }
};

// Batches by step. Step s covers samples [s·S, (s+1)·S) of the dataset, S = samples_per_step, so
// every division of S into ranks, micro-batches and rows trains on the same samples in each step.
// There is no state: where a run stands is one integer.
class Loader {
 public:
  // Throws Error(argument) for a shape with a count below 1 or a rank outside [0, ranks).
  Loader(std::shared_ptr<const Dataset<TokenWindow>> data, int64_t T, const BatchShape& shape);

  // Micro-batch `micro` of `step` for this rank.
  Batch batch(int64_t step, int64_t micro) const;
  // The number of the first sample of a step: samples used by the steps before it.
  int64_t position(int64_t step) const { return step * shape_.samples_per_step(); }
  // Epochs begun before `step`, as a fraction.
  double epochs(int64_t step) const;

  const BatchShape& shape() const { return shape_; }
  int64_t sequence() const { return T_; }

 private:
  std::shared_ptr<const Dataset<TokenWindow>> data_;
  int64_t T_;
  BatchShape shape_;
};

}  // namespace ingot
