#include "ingot/nn/block.h"

#include <utility>

namespace ingot::nn {

Tensor Block::operator()(const Tensor& x, const Context& context) const {
  if (arounds_.empty()) {
    return forward(x, context);
  }
  // A list of its own, for what was put aside once may be gone when a recomputation comes.
  Run run = [this, context](const Tensor& input) {
    TensorList aside;
    Context inner = context;
    inner.aside = context.aside != nullptr ? &aside : nullptr;
    TensorList results = {forward(input, inner)};
    results.insert(results.end(), aside.begin(), aside.end());
    return results;
  };
  for (const Around& around : arounds_) {
    run = [&around, inner = std::move(run)](const Tensor& input) { return around(inner, input); };
  }
  const TensorList results = run(x);
  if (context.aside != nullptr) {
    context.aside->insert(context.aside->end(), results.begin() + 1, results.end());
  }
  return results.front();
}

}  // namespace ingot::nn
