#pragma once

#include <string>
#include <string_view>

#include "ingot/autograd/node.h"

namespace ingot {

// Sees what the operations of this thread make while it lives: for finding where a value went
// wrong, and for statistics. It sees the very tensors, and must not write to them. The newest one
// of a thread sees; without any an operation costs a test of a pointer.
class Watch {
 public:
  Watch();
  virtual ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The results of an operation, with their history where it was recorded. An operation within the
  // formula of a gradient is seen too, between `entering` and `differentiated`.
  virtual void made(std::string_view op, const TensorList& ys) = 0;
  // Tensors that some places show by a name:
  //   "attention"   q [B, T, H, C], k [B, S, K, C], the factor of q·k
  //   "mlp hidden"  [..., F]: a feed-forward layer after its activation
  //   "layer"       [B, T, D]: what a layer gives
  //   "attention weights"  [B, H, T, S]: what each query gives to each key; only where wanted,
  //                        since nothing else makes them
  //   "logit sums"  [N, 2]: the largest logit l of a row and Σ exp(l_v − l); and [N] i64, labels;
  //                 only where wanted, since the logits are computed once more for it
  virtual void shown(std::string_view /*what*/, const TensorList& /*xs*/) {}
  // Whether it is to be made to be shown.
  virtual bool wants(std::string_view /*what*/) const { return false; }
  // The backward comes to an operation.
  virtual void entering(const Node& /*node*/) {}
  // Its gradients with respect to formula.inputs, in their order; undefined ones are zero. Where
  // the formula added to what had arrived in place, the sum.
  virtual void differentiated(const Node& /*node*/, const Formula& /*formula*/,
                              const TensorList& /*parts*/) {}

 private:
  Watch* previous_;
};

Watch* watching();  // of this thread, or null

// Names the part of a model whose operations run on this thread while it lives, "layers.3". Within
// another one, the inner name counts.
class PartScope {
 public:
  explicit PartScope(const std::string& name);
  ~PartScope();
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  const std::string* previous_;
  std::string name_;
};

std::string_view current_part();  // empty outside of any

}  // namespace ingot
