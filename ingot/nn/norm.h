#pragma once

#include "ingot/nn/module.h"
#include "ingot/ops/norm.h"

namespace ingot::nn {

enum class NormKind : uint8_t { layer, rms, none };

// Layer norm (with gain and bias), RMS norm (with gain) or nothing, over the last dimension. An RMS
// norm's gains may be stored as their difference from `gain_offset`.
class Norm : public Module {
 public:
  Norm(NormKind kind, int64_t width, double eps, DType dtype, Device device,
       double gain_offset = 0);

  Tensor operator()(const Tensor& x) const;
  // The same of x + residual, with that sum, in one pass over memory.
  NormedSum add(const Tensor& x, const Tensor& residual) const;
  void visit(Visitor& v) override;

  Tensor weight;  // [D], starts where the gain is 1; undefined for none
  Tensor bias;    // [D], layer norm only

 private:
  NormKind kind_;
  double eps_;
  double gain_offset_;
};

}  // namespace ingot::nn
