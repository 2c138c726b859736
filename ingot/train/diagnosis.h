#pragma once

#include <map>
#include <string>
#include <vector>

#include "ingot/autograd/watch.h"
#include "ingot/nn/block.h"
#include "ingot/optim/optimizer.h"
#include "ingot/train/train.h"

namespace ingot {

// What diagnosis warns of. Of all layers together:
//   vanishing gradients: a layer's norm is below 1e-4 of the last layer's
//   exploding gradients: a layer's norm is above 1e4 of the last layer's
// of one layer:
//   dead units: above 30 % of its feed-forward units are, for every token, below 1e-4 of the
//   largest instability: an attention logit above 50 (Dehghani et al. 2023, "Scaling vision
//   transformers to 22 billion parameters", arXiv:2302.05442, section 3.1; Wortsman et al. 2023,
//   arXiv:2309.14322), or an update of more than 10 % of the weights' norm
struct DiagnosisLimits {
  double vanishing = 1e-4;
  double exploding = 1e4;
  double dead_share = 0.3;
  double dead_level = 1e-4;
  double logit = 50;
  double update = 0.1;
};

// Measures one step layer by layer while it lives, of the operations of this thread. Adds to the
// step's metrics, each followed by "/layers.3" and so on:
//   grad_norm        ‖g‖ of the mean gradient, before clipping
//   update_ratio     ‖Δw‖ / ‖w‖ of the weights in full precision
//   activation_rms, activation_max   of what the layer gives
//   dead_units       share, 0 … 1
//   max_logit        the largest |q·k| · scale over keys up to each query, of the first row of each
//                    micro-batch
// and, of the step as a whole,
//   log_z            mean |log Z| over the labels that count, Z = Σ_v exp(logit_v), where the loss
//                    is a linear_cross_entropy
// and to its events the warnings. Takes a copy of the weights, and the logits of one head at a
// time.
class Diagnosis : public Watch {
 public:
  explicit Diagnosis(const Optimizer& optimizer, const DiagnosisLimits& limits = {});

  void made(std::string_view, const TensorList&) override {}
  void shown(std::string_view what, const TensorList& xs) override;
  bool wants(std::string_view what) const override { return what == "logit sums"; }

  void before_update(double divisor);  // of the gradients, for the mean's
  void after_update(StepReport& report) const;

 private:
  struct Part {
    double activation_squares = 0;
    double activation_count = 0;
    double activation_max = 0;
    double max_logit = 0;
    std::vector<float> unit_max;
    double gradient_norm = 0;
    double update_ratio = 0;
  };
  void add_log_z(const Tensor& sums, const Tensor& labels);
  std::vector<std::string> warnings(const std::map<std::string, Part>& parts) const;

  const Optimizer& optimizer_;
  DiagnosisLimits limits_;
  std::map<std::string, Part> parts_;
  double log_z_ = 0;  // Σ |log Z|
  int64_t log_z_count_ = 0;
  TensorDict before_;
};

// "layers.3" for "layers.3.mlp.up.weight", "embedding" for "embedding.weight".
std::string part_of(std::string_view parameter);

// Gives the operations of a layer its name, and shows what it gives to whoever watches.
nn::Block::Around named_part(std::string name);

}  // namespace ingot
