#include "ingot/models/multi_token.h"

#include "ingot/ops/shape.h"

namespace ingot {

MultiTokenHead::MultiTokenHead(const MultiTokenConfig& config, const nn::TransformerOptions& o,
                               DType dtype, Device device)
    : layer(o, dtype, device),
      norm(o.norm, o.attention.width, o.norm_eps, dtype, device, o.gain_offset) {
  if (config.kind == "sequential") {
    const int64_t width = o.attention.width;
    embedding_norm.emplace(o.norm, width, o.norm_eps, dtype, device, o.gain_offset);
    hidden_norm.emplace(o.norm, width, o.norm_eps, dtype, device, o.gain_offset);
    join.emplace(2 * width, width, nn::Bias::no, dtype, device);
  }
}

Tensor MultiTokenHead::operator()(const Tensor& before, const Tensor& embedded,
                                  const nn::Context& context) const {
  if (!join) {
    return layer(before, context);
  }
  const Tensor both = concat({(*embedding_norm)(embedded), (*hidden_norm)(before)}, -1);
  return layer((*join)(both), context);
}

void MultiTokenHead::visit(nn::Visitor& v) {
  v("embedding_norm", embedding_norm);
  v("hidden_norm", hidden_norm);
  v("join", join);
  v("layer", layer);
  v("norm", norm);
}

}  // namespace ingot
