#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/nn/moe.h"

namespace ingot {

// Experts in place of the feed-forward layers of a decoder, and what keeps them busy.
struct MoeConfig {
  int64_t experts = 0;  // E
  int64_t top_k = 2;    // k
  int64_t hidden = 0;
  int64_t shared = 0;
  std::optional<std::string> score;
  std::optional<bool> renormalise;
  double scale = 1;
  int64_t groups = 1;
  int64_t groups_kept = 1;
  std::optional<std::string> group_score;
  std::optional<bool> correction;
  int64_t dense_first = 0;
  int64_t every = 1;
  std::vector<int64_t> dense_layers;
  std::optional<double> balance;
  std::string balance_span = "layer";
  double z_loss = 0;
  double bias_rate = 0.001;

  template <class V>
  void describe(V& v) {
    v("experts", experts, in(0, 65536), "experts of a layer; 0: a dense model");
    v("top_k", top_k, at_least(1), "experts that a token passes");
    v("hidden", hidden, at_least(0), "width of an expert; 0: model.hidden");
    v("shared", shared, at_least(0), "experts' widths that every token passes besides; 0: none");
    v("score", score, one_of({"softmax", "sigmoid"}), "of the router's logits");
    v("renormalise", renormalise, "divide the weights of a token's experts by their sum");
    v("scale", scale, above(0), "factor on these weights");
    v("groups", groups, at_least(1), "groups that the experts stand in");
    v("groups_kept", groups_kept, at_least(1), "groups that a token chooses its experts from");
    v("group_score", group_score, one_of({"best", "best_two"}),
      "a group counts as its best expert, or as the sum of its best two");
    v("correction", correction, "a bias for each expert that steers the choice and no weight");
    v("dense_first", dense_first, at_least(0), "first layers that stay dense");
    v("every", every, at_least(1), "every how many layers experts stand, the n-th first");
    v("dense_layers", dense_layers, at_least(0), "further layers that stay dense, from 0");
    v("balance", balance, at_least(0), "weight of the load-balancing loss");
    v("balance_span", balance_span, one_of({"layer", "model"}),
      "balance each layer's experts, or those of all layers laid end to end as Mixtral does");
    v("z_loss", z_loss, at_least(0), "weight of the router's logsumexp² in the loss");
    v("bias_rate", bias_rate, at_least(0), "step of the correction after each update");
  }
};

// Whether layer `layer`, from 0, has experts.
bool has_experts(const MoeConfig& config, int64_t layer);

// Fills in the open fields, from `family` where that says something. Throws Error(config) where
// fields contradict each other.
void complete_moe(MoeConfig& config, const MoeConfig& family, int64_t hidden);

// What one layer of experts is built from; the config must be complete.
nn::MoeOptions moe_options(const MoeConfig& config, int64_t width, nn::Activation activation);

nn::RouterScore router_score(const MoeConfig& config);

}  // namespace ingot
