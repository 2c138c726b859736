#pragma once

#include <vector>

#include "ingot/models/moe_config.h"
#include "ingot/nn/expert_load.h"
#include "ingot/train/objective.h"

namespace ingot {

// Adds to `loss`, a sum over loss.count tokens, count times each router loss that the config
// weighs, over the tokens whose label counts: so the mean over a step holds weight · loss. Adds the
// losses before their weights to the metrics (balance_loss, router_z_loss), and what the experts
// were given to `loads`. The z-loss is a sum over tokens, the same in any division into
// micro-batches; the balance loss multiplies two means and is that of each micro-batch
// (docs/decisions.md).
void add_router_losses(Loss& loss, const std::vector<nn::Routed>& routed, const MoeConfig& config,
                       const Tensor& labels, nn::ExpertLoads& loads);

}  // namespace ingot
