#pragma once

#include "ingot/peft/adapter.h"

namespace ingot::peft {

// A small network behind a map, around which a residual goes:
//   y' = y + gelu(y Dᵀ + d) Uᵀ + u,   D: [M, Out], U: [Out, M]
// U and u start at 0, so that it starts as the identity. Behind the last map of attention and of
// the feed-forward layer it is that of Houlsby et al. 2019, arXiv:1902.00751, figure 2. No single
// linear map computes the same: it cannot be merged.
class Bottleneck : public Adapter {
 public:
  Bottleneck(const nn::Linear& map, int64_t width, const AdapterSeed& seed, DType dtype,
             Device device, std::shared_ptr<const AdapterState> state);

  Tensor after(const Tensor& x, Tensor y, const nn::Linear& map) const override;
  Merged merged(const Merged& map) const override;
  void visit(nn::Visitor& v) override;

  Tensor down, down_bias, up, up_bias;
};

}  // namespace ingot::peft
