#include "ingot/nn/block.h"

#include <utility>

namespace ingot::nn {

Tensor Block::operator()(const Tensor& x, const Context& context) const {
  if (arounds_.empty()) {
    return forward(x, context);
  }
  Run run = [this, context](const Tensor& input) { return forward(input, context); };
  for (const Around& around : arounds_) {
    run = [&around, inner = std::move(run)](const Tensor& input) { return around(inner, input); };
  }
  return run(x);
}

}  // namespace ingot::nn
