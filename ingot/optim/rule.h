#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot {

// One tensor that a rule keeps for a parameter; zero before the first step.
struct Slot {
  std::string_view name;  // "m": a literal
  Shape shape;
  DType dtype;
};

// A parameter as a rule sees it.
struct Weight {
  Tensor full;     // f32 or f64: the parameter itself, or its master
  Tensor rounded;  // the bf16 or f16 parameter where `full` is its master; undefined otherwise
};

// The numbers of one update of one parameter.
struct Step {
  int64_t t = 1;             // updates of this parameter, this one included
  double learning_rate = 0;  // the group's multiplier applied
  double decay = 1;          // the group's multiplier of the rule's weight decay
  double scale = 1;          // the gradient is scale·g
};

// An update rule: the algorithm and nothing else. Optimizer owns the walk over the parameters,
// masters, state and files.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::string_view name() const = 0;  // "adamw"
  virtual std::vector<Slot> slots(const Weight& p) const = 0;
  // p.full ← the next weights; `slots` in the order of slots(). g has the type of p.full. A rule in
  // one pass over memory writes p.rounded too; where it does not, Optimizer does.
  virtual void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const = 0;
};

}  // namespace ingot
