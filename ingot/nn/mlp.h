#pragma once

#include "ingot/nn/activation.h"
#include "ingot/nn/linear.h"

namespace ingot::nn {

struct MlpOptions {
  int64_t width = 0;   // D
  int64_t hidden = 0;  // F
  Activation activation = Activation::swiglu;
  Bias bias = Bias::no;
};

// y = down(act(up(x))), or down(act(gate(x)) · up(x)) with a gated activation.   x, y: [..., D]
class Mlp : public Module {
 public:
  Mlp(const MlpOptions& options, DType dtype, Device device);

  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) override;

  std::optional<Linear> gate;  // [F, D]
  Linear up;                   // [F, D]
  Linear down;                 // [D, F]

 private:
  Activation activation_;
};

}  // namespace ingot::nn
