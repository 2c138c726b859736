#include "ingot/nn/router_losses.h"

#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

// What counts, in the type of the logits: [N].
Tensor weights_of_tokens(const Routed& layer, const Tensor& counted) {
  const Tensor& logits = layer.logits;
  check(!counted.defined() || counted.shape() == Shape{logits.size(0)}, ErrorKind::shape,
        "router loss: takes one mark a token: counted is ",
        counted.defined() ? counted.shape() : Shape{}, ", logits are ", logits.shape());
  return counted.defined() ? cast(counted, logits.dtype())
                           : full({logits.size(0)}, 1, logits.dtype(), logits.device());
}

Tensor probabilities(const Tensor& logits, RouterScore score) {
  if (score == RouterScore::softmax) {
    return softmax(logits);
  }
  const Tensor scores = sigmoid(logits);
  return scores / sum(scores, -1, Keep::yes);
}

// Never 0, so that sums over no token divide to 0.
Tensor at_least_one(const Tensor& tokens) {
  return clamp(tokens, 1, std::numeric_limits<double>::infinity());
}

void check_any(const std::vector<Routed>& layers) {
  check(!layers.empty(), ErrorKind::argument, "router loss: there is no router");
}

}  // namespace

Tensor expert_counts(const Routed& layer, const Tensor& counted) {
  const Tensor marks = weights_of_tokens(layer, counted);
  const Tensor chosen = detach(layer.chosen);  // [N, k]
  const Tensor each = reshape(expand(unsqueeze(marks, -1), chosen.shape()), {chosen.elements()});
  const Tensor none = zeros({layer.logits.size(1)}, marks.dtype(), marks.device());
  return scatter_add(none, 0, reshape(chosen, {chosen.elements()}), each);
}

Tensor load_balancing_loss(const std::vector<Routed>& layers, RouterScore score,
                           const Tensor& counted) {
  check_any(layers);
  Tensor tokens, taken, likely;
  for (const Routed& layer : layers) {
    const Tensor marks = weights_of_tokens(layer, counted);
    const Tensor p = sum(probabilities(layer.logits, score) * unsqueeze(marks, -1), 0);  // [E]
    const Tensor counts = expert_counts(layer, counted);
    tokens = tokens.defined() ? tokens + sum(marks) : sum(marks);
    taken = taken.defined() ? taken + counts : counts;
    likely = likely.defined() ? likely + p : p;
  }
  const Tensor all = at_least_one(tokens);
  return sum((taken / all) * (likely / all)) * static_cast<double>(taken.elements());
}

Tensor router_z_loss(const std::vector<Routed>& layers, const Tensor& counted) {
  check_any(layers);
  Tensor tokens, total;
  for (const Routed& layer : layers) {
    const Tensor marks = weights_of_tokens(layer, counted);
    const Tensor z = sum(square(logsumexp(layer.logits, -1)) * marks);
    tokens = tokens.defined() ? tokens + sum(marks) : sum(marks);
    total = total.defined() ? total + z : z;
  }
  return total / at_least_one(tokens);
}

}  // namespace ingot::nn
