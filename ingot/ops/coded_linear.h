#pragma once

#include <memory>

#include "ingot/tensor/tensor.h"

namespace ingot {

// A weight [Out, In] kept in fewer bits than it is computed with, for maps that are used and not
// trained.
class CodedWeight {
 public:
  virtual ~CodedWeight() = default;
  virtual int64_t rows() const = 0;     // Out
  virtual int64_t columns() const = 0;  // In
  virtual int64_t bytes() const = 0;    // that it takes
  virtual Device device() const = 0;
  // Rows [begin, end) as numbers, [end − begin, In] dense.
  virtual Tensor decoded(int64_t begin, int64_t end, DType dtype) const = 0;
  // x Wᵀ + b for few rows x [M, In] straight from the codes; undefined where there is no faster way
  // than decoding.
  virtual Tensor few_rows(const Tensor& /*x*/, const Tensor& /*bias*/) const { return {}; }
};

// y = x Wᵀ + b, decoding a block of rows of W at a time, forward and backward: W never exists
// whole. x: [..., In] → [..., Out]. The weight gets no gradient, x and the bias do. Dettmers et al.
// 2023, arXiv:2305.14314, equation 5 (without the adapter, which peft/ adds).
Tensor coded_linear(const Tensor& x, const std::shared_ptr<const CodedWeight>& weight,
                    const Tensor& bias = {});

}  // namespace ingot
