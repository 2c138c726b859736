#pragma once

#include "ingot/ops/coded_linear.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot::testing {

// A "coded" weight that is kept as it is, and counts what is read of it.
class PlainRows : public CodedWeight {
 public:
  explicit PlainRows(Tensor weight) : weight_(std::move(weight)) {}

  int64_t rows() const override { return weight_.size(0); }
  int64_t columns() const override { return weight_.size(1); }
  int64_t bytes() const override { return weight_.bytes(); }
  Device device() const override { return weight_.device(); }
  Tensor decoded(int64_t begin, int64_t end, DType dtype) const override {
    most = std::max(most, end - begin);
    return converted(dense(sliced(weight_, 0, begin, end)), dtype);
  }

  mutable int64_t most = 0;  // rows decoded at a time

 private:
  Tensor weight_;
};

}  // namespace ingot::testing
