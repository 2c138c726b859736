#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/optim/groups.h"
#include "ingot/optim/rule.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// How half-precision parameters are kept.
//   master      an f32 copy is updated, and rounded to nearest into the parameter
//   stochastic  no copy: the parameter is widened, updated, and rounded to one of its neighbours
//   with
//               the probability that makes the mean right, so that updates below its spacing are
//               not lost. bf16 alone. Gupta et al. 2015, "Deep learning with limited numerical
//               precision", arXiv:1502.02551; Zamirai et al. 2020, "Revisiting BFLOAT16 training",
//               arXiv:2010.06192
enum class Halves : uint8_t { master, stochastic };

// Updates parameters by a rule, from the gradients that backward() left in them. Half-precision
// parameters have an f32 master, which the rule updates and which is rounded into the parameter in
// the same pass; f32 and f64 parameters are updated in place.
class Optimizer {
 public:
  // Allocates all masters and state, counted under Purpose::optimizer. Parameters must be dense
  // floating-point leaves (require_grad). Throws Error(argument) or Error(dtype) naming the one
  // that is not, Error(config) for a group rule that matches none.
  // `seed`: of stochastic rounding; Error(dtype) for an f16 parameter that is to be rounded so.
  Optimizer(const TensorDict& parameters, std::unique_ptr<const Rule> rule,
            const GroupRules& groups = {}, Halves halves = Halves::master, uint64_t seed = 0);

  // One update of every parameter that has a gradient, from scale·grad(p); `scale` carries
  // 1 / count of the loss and the clip factor. A parameter without one is left alone. Gradients are
  // released on the way: their memory goes back to the allocator, which hands it to the next
  // backward. Throws Error(argument) for a learning rate that is negative or not finite,
  // Error(numeric) for such a scale, before anything is written.
  void step(double learning_rate, double scale = 1);
  void clear();  // releases all gradients

  // Whether the rule wants an estimate of the curvature before the next step; gives it one, by
  // parameter, in the type of the full weights. Throws Error(argument) for a name that is missing.
  bool curvature_due() const;
  Curvature curvature() const { return rule_->curvature(); }
  void observe_curvature(const TensorDict& estimates);

  // Some rules train other weights than are to be measured and published: averages. Between
  // show_evaluated and show_trained the parameters hold those, and step() is refused
  // (Error(internal)); back come the same bits. See EvaluatedWeights.
  void show_evaluated();
  void show_trained();

  // Everything that must be saved to go on bit for bit, sharing the live tensors' memory:
  //   <rule>.<slot>/<parameter>  the rule's tensors: "adamw.m/layers.0.attention.wq.weight"
  //   <rule>.t/<parameter>       the number of updates, i64, shape []
  //   master/<parameter>         f32, for half-precision parameters
  TensorDict state() const;
  // Copies a saved state in, and rounds masters into their parameters. All names, shapes and types
  // are checked before the first write. Throws Error(argument), Error(shape) or Error(dtype).
  void load(const TensorDict& state);

  // Starts a half-precision parameter from unrounded values (f32): master ← values, parameter ←
  // rounded. For an f32 or f64 parameter: the parameter ← values.
  void set_master(std::string_view name, const Tensor& values);
  // The weights in full precision: masters where there are, the parameters themselves elsewhere;
  // where half-precision ones have no master, widened copies.
  TensorDict masters() const;

  std::string_view rule() const { return rule_->name(); }
  const TensorDict& parameters() const { return parameters_; }
  const std::vector<Group>& groups() const { return groups_; }  // one per parameter, in order
  int64_t state_bytes() const;                                  // of slots and masters
  double state_bytes_per_parameter() const;

 private:
  // What belongs to one parameter.
  struct Item {
    Weight weight;
    TensorList slots;
    int64_t t = 0;
    bool shown = false;  // the parameter holds other weights than are trained
    Tensor trained;      // those of a parameter without a master meanwhile
  };
  // A half-precision parameter as a rule sees it that has no master.
  Weight widened(const Item& item) const;
  bool has_no_master(const Item& item) const {
    return halves_ == Halves::stochastic && item.weight.rounded.defined();
  }
  Item make_item(const std::string& name, const Tensor& p, const Group& group) const;
  void update(const Tensor& p, const Group& group, Item& item, uint64_t site, double learning_rate,
              double scale);

  TensorDict parameters_;
  std::unique_ptr<const Rule> rule_;
  std::vector<Group> groups_;
  std::vector<Item> items_;
  Halves halves_;
  uint64_t seed_;
  bool evaluated_ = false;
};

// While it lives, the optimizer's parameters hold the weights that are to be measured and saved as
// a model.
class EvaluatedWeights {
 public:
  explicit EvaluatedWeights(Optimizer& optimizer) : optimizer_(optimizer) {
    optimizer_.show_evaluated();
  }
  ~EvaluatedWeights() { optimizer_.show_trained(); }
  EvaluatedWeights(const EvaluatedWeights&) = delete;
  EvaluatedWeights& operator=(const EvaluatedWeights&) = delete;

 private:
  Optimizer& optimizer_;
};

}  // namespace ingot
