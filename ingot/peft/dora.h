#pragma once

#include "ingot/peft/lora.h"

namespace ingot::peft {

// Weight-decomposed low-rank adaptation: direction and magnitude of each output feature are learnt
// apart. With V = W + s · B A and n = |V| of each row (an output feature; the paper writes W as
// [In, Out] and says column),
//   y = (x Vᵀ) · m/n + bias,   m starts as |W|
// The norm counts as a constant for the gradient, which is section 4.3 of the paper and what others
// do; `whole_gradient` differentiates it too. Liu et al. 2024, arXiv:2402.09353, equations 5
// and 11. n² = |W|² + 2s Σ_r B∘(W Aᵀ) + s² Σ_r (B A Aᵀ)∘B, so V is never made.
class Dora : public Lora {
 public:
  Dora(const nn::Linear& map, const LoraOptions& options, const AdapterSeed& seed, DType dtype,
       Device device, std::shared_ptr<const AdapterState> state, bool whole_gradient = false);

  Tensor after(const Tensor& x, Tensor y, const nn::Linear& map) const override;
  Merged merged(const Merged& map) const override;
  void visit(nn::Visitor& v) override;

  // n of each output feature of `map`: [Out], f32 (f64 for f64).
  Tensor norms(const nn::Linear& map) const;

  Tensor magnitude;  // [Out], f32 (f64 for f64)

 private:
  Tensor squares_;  // |W|² of each row
  bool whole_gradient_;
};

}  // namespace ingot::peft
