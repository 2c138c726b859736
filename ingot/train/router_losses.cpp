#include "ingot/train/router_losses.h"

#include "ingot/nn/router_losses.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// 1 for tokens whose label counts: [B·T].
Tensor counted_tokens(const Tensor& labels, DType dtype) {
  const Tensor flat = reshape(labels, {labels.elements()});
  const Tensor ignored = scalar(ignored_label, flat.dtype(), flat.device());
  return cast(not_equal(flat, ignored), dtype);
}

// Of all layers laid end to end, or the mean of each layer's own.
Tensor balance_loss(const std::vector<nn::Routed>& routed, const MoeConfig& config,
                    const Tensor& counted) {
  const nn::RouterScore score = router_score(config);
  if (config.balance_span == "model") {
    return nn::load_balancing_loss(routed, score, counted);
  }
  Tensor total;
  for (const nn::Routed& layer : routed) {
    const Tensor one = nn::load_balancing_loss({layer}, score, counted);
    total = total.defined() ? total + one : one;
  }
  return total / static_cast<double>(routed.size());
}

void add_term(Loss& loss, const char* name, const Tensor& mean, double weight) {
  loss.sum = loss.sum + cast(mean, loss.sum.dtype()) * (weight * loss.count);
  if (mean.device().kind != DeviceKind::meta) {
    loss.metrics[name] += mean.item() * loss.count;
  }
}

}  // namespace

void add_router_losses(Loss& loss, const std::vector<nn::Routed>& routed, const MoeConfig& config,
                       const Tensor& labels, nn::ExpertLoads& loads) {
  if (routed.empty()) {
    return;
  }
  const Tensor counted = counted_tokens(labels, routed[0].logits.dtype());
  if (*config.balance > 0) {
    add_term(loss, "balance_loss", balance_loss(routed, config, counted), *config.balance);
  }
  if (config.z_loss > 0) {
    add_term(loss, "router_z_loss", nn::router_z_loss(routed, counted), config.z_loss);
  }
  loads.add(routed, counted);
}

}  // namespace ingot
