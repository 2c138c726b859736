#pragma once

#include "ingot/peft/adapter.h"

namespace ingot::peft {

// (IA)³: learnt factors of activations, which start at 1.
//   of a result (keys, values)             y = (x Wᵀ + bias) · l,   l: [Out]
//   of an input (the second feed-forward)  y = (x · l) Wᵀ + bias,   l: [In]
// Liu et al. 2022, arXiv:2205.05638, section 3.3.
class Ia3 : public Adapter {
 public:
  enum class Scales : bool { output, input };

  Ia3(const nn::Linear& map, Scales scales, DType dtype, Device device,
      std::shared_ptr<const AdapterState> state);

  bool changes_input() const override { return scales_ == Scales::input; }
  Tensor before(const Tensor& x) const override;
  Tensor after(const Tensor& x, Tensor y, const nn::Linear& map) const override;
  Merged merged(const Merged& map) const override;
  void visit(nn::Visitor& v) override;

  Scales scales() const { return scales_; }

  Tensor factors;  // l

 private:
  Tensor weighted(DType dtype) const;  // 1 + weight · (l − 1)

  Scales scales_;
};

}  // namespace ingot::peft
