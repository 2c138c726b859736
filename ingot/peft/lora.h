#pragma once

#include "ingot/peft/adapter.h"

namespace ingot::peft {

// Low-rank adaptation. With A [r, In], B [Out, r] and x_d what dropout leaves of x:
//   y = x Wᵀ + bias + s · (x_d Aᵀ) Bᵀ,   s = α/r, or α/√r for rsLoRA
// A starts uniform in ±1/√In and B at 0, so that the adapted map starts as the map itself. Hu et
// al. 2021, arXiv:2106.09685, equation 3; Kalajdzievski 2023, arXiv:2312.03732.
struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;
  bool rslora = false;
  double dropout = 0;  // of the adapter's input, in training
};

double lora_scaling(const LoraOptions& options);

class Lora : public Adapter {
 public:
  // For `map`, in the type it computes with.
  Lora(const nn::Linear& map, const LoraOptions& options, const AdapterSeed& seed, DType dtype,
       Device device, std::shared_ptr<const AdapterState> state);

  Tensor after(const Tensor& x, Tensor y, const nn::Linear& map) const override;
  Merged merged(const Merged& map) const override;
  void visit(nn::Visitor& v) override;

  const LoraOptions& options() const { return options_; }
  double scaling() const { return lora_scaling(options_); }

  Tensor a;  // [r, In]
  Tensor b;  // [Out, r]
  // Where the frozen weight was lowered by scaling · start_b start_a (PiSSA): what was taken out of
  // it. Undefined otherwise.
  Tensor start_a, start_b;

 protected:
  Tensor dropped(const Tensor& x) const;
  double weighted_scaling() const { return scaling() * state().weight; }

 private:
  LoraOptions options_;
  uint64_t site_;
};

// The same map relative to the weight that PiSSA started from: of rank 2r where it lowered it,
// [B, −B₀] [A; A₀], else A and B themselves. In both cases to be scaled by scaling().
struct LowRankPair {
  Tensor a, b;
};
LowRankPair exported(const Lora& lora);

// B A of several maps that a published model joins along the output: A stacked, B block by block.
LowRankPair joined(const std::vector<LowRankPair>& parts);

}  // namespace ingot::peft
