#pragma once

#include <memory>

#include "ingot/ops/coded_linear.h"

namespace ingot {

// A weight [Out, In] in 8 bits with a scale for every 64 features of a row (symmetric round to
// nearest, as in Dettmers et al. 2022, arXiv:2110.02861, linear instead of dynamic codes):
// w[n, k] ≈ scales[n, k / 64] · codes[n, k]. Takes 1.06 bytes a weight; largest error of a weight:
// 1/254 of the largest magnitude in its group.
struct Int8Weight {
  Tensor codes;   // [Out, In] i8
  Tensor scales;  // [Out, ⌈In / 64⌉] f32

  bool defined() const { return codes.defined(); }
};

// weight: [Out, In]. Without history.
Int8Weight int8_weight(const Tensor& weight);

// The weight that the codes stand for.
Tensor dense_weight(const Int8Weight& weight, DType dtype);

// The same as a weight for coded_linear.
std::shared_ptr<const CodedWeight> coded_rows(const Int8Weight& weight);

// y = x Wᵀ + b: [..., In] → [..., Out]. Up to 16 rows read the codes at memory speed, and no row
// depends on the others; more take the codes decoded, a block of rows at a time. The weight gets no
// gradient, x and the bias do.
Tensor int8_linear(const Tensor& x, const Int8Weight& weight, const Tensor& bias = {});

}  // namespace ingot
