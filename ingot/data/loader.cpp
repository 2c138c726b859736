#include "ingot/data/loader.h"

#include <utility>

namespace ingot {

Loader::Loader(std::shared_ptr<const Dataset<TokenWindow>> data, int64_t T, const BatchShape& shape)
    : data_(std::move(data)), T_(T), shape_(shape) {
  check(shape.rows >= 1 && shape.accumulate >= 1 && shape.ranks >= 1, ErrorKind::argument,
        "loader: counts must be at least 1: rows are ", shape.rows, ", micro-batches ",
        shape.accumulate, ", ranks ", shape.ranks);
  check(shape.rank >= 0 && shape.rank < shape.ranks, ErrorKind::argument,
        "loader: the rank must be in [0, ", shape.ranks, "): got ", shape.rank);
}

Batch Loader::batch(int64_t step, int64_t micro) const {
  check(step >= 0 && micro >= 0 && micro < shape_.accumulate, ErrorKind::argument,
        "loader: no such micro-batch: step is ", step, ", micro-batch is ", micro, " of ",
        shape_.accumulate);
  const int64_t before = micro * shape_.ranks + shape_.rank;
  return batch_from(*data_, position(step) + before * shape_.rows, shape_.rows, T_);
}

double Loader::epochs(int64_t step) const {
  return static_cast<double>(position(step)) / static_cast<double>(data_->size());
}

}  // namespace ingot
