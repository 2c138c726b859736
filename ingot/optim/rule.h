#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot {

// One tensor that a rule keeps for a parameter.
struct Slot {
  std::string_view name;  // "m": a literal
  Shape shape;
  DType dtype;
  double start = 0;  // what it holds before the first step
};

// A parameter as a rule sees it.
struct Weight {
  Tensor full;          // f32 or f64: the parameter itself, or its master
  Tensor rounded;       // the bf16 or f16 parameter where `full` is its master; undefined otherwise
  bool matrix = false;  // of two dimensions, and to be treated as a whole (Group::matrix)
};

// The numbers of one update of one parameter.
struct Step {
  int64_t t = 1;             // updates of this parameter, this one included
  double learning_rate = 0;  // the group's multiplier applied
  double decay = 1;          // the group's multiplier of the rule's weight decay
  double scale = 1;          // the gradient is scale·g
};

// How the diagonal of the Hessian is estimated: from labels that the model draws itself, or from
// products with random vectors.
enum class Curvature : uint8_t { drawn_labels, hutchinson };

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

  // What is to be evaluated and published in the place of p after t updates, of p.full's shape and
  // type; undefined where it is p itself.
  virtual Tensor evaluated(const Weight&, const TensorList&, int64_t) const { return {}; }

  // A rule that needs the curvature asks for it before updates t = 1, 1 + every, …; 0: never.
  virtual int64_t curvature_every() const { return 0; }
  virtual Curvature curvature() const { return Curvature::drawn_labels; }
  // Takes in an estimate of the diagonal of the Hessian at p, of p.full's shape and type.
  virtual void observe_curvature(const Tensor&, TensorList&) const {}
};

}  // namespace ingot
