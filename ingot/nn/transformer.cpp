#include "ingot/nn/transformer.h"

#include "ingot/ops/elementwise.h"

namespace ingot::nn {

namespace {

NormKind input_norm(const TransformerOptions& o) {
  return o.norm_position == NormPosition::output ? NormKind::none : o.norm;
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerOptions& o, DType dtype, Device device)
    : attention_norm(input_norm(o), o.attention.width, o.norm_eps, dtype, device, o.gain_offset),
      mlp_norm(input_norm(o), o.attention.width, o.norm_eps, dtype, device, o.gain_offset),
      attention_dropout(o.dropout),
      mlp_dropout(o.dropout),
      norm_position_(o.norm_position),
      residual_(o.residual),
      parallel_(o.parallel) {
  if (o.latent) {
    latent_attention.emplace(*o.latent, dtype, device);
  } else {
    attention.emplace(o.attention, dtype, device);
  }
  if (o.moe) {
    moe.emplace(*o.moe, dtype, device);
  } else {
    mlp.emplace(o.mlp, dtype, device);
  }
  if (norm_position_ == NormPosition::sandwich || norm_position_ == NormPosition::output) {
    for (std::optional<Norm>* norm : {&attention_output_norm, &mlp_output_norm}) {
      norm->emplace(o.norm, o.attention.width, o.norm_eps, dtype, device, o.gain_offset);
    }
  }
}

Tensor TransformerBlock::attended(const Tensor& x, const Context& context) const {
  const Tensor y = attention ? (*attention)(x, context) : (*latent_attention)(x, context);
  return attention_dropout(attention_output_norm ? (*attention_output_norm)(y) : y,
                           context.randomness);
}

Tensor TransformerBlock::transformed(const Tensor& x, const Context& context) const {
  const Tensor y = mlp ? (*mlp)(x) : (*moe)(x, context);
  return mlp_dropout(mlp_output_norm ? (*mlp_output_norm)(y) : y, context.randomness);
}

Tensor TransformerBlock::forward(const Tensor& x, const Context& context) const {
  if (norm_position_ == NormPosition::post) {
    if (!residual_) {
      return mlp_norm(transformed(attention_norm(attended(x, context)), context));
    }
    const Tensor middle = attention_norm.add(attended(x, context), x).normed;
    return mlp_norm.add(transformed(middle, context), middle).normed;
  }
  const Tensor y = attended(attention_norm(x), context);
  if (parallel_) {
    return x + y + transformed(mlp_norm(x), context);
  }
  if (!residual_) {
    return transformed(mlp_norm(y), context);
  }
  const NormedSum middle = mlp_norm.add(y, x);
  return middle.sum + transformed(middle.normed, context);
}

void TransformerBlock::visit(Visitor& v) {
  v("attention_norm", attention_norm);
  v("attention", attention);
  v("attention", latent_attention);
  v("attention_output_norm", attention_output_norm);
  v("mlp_norm", mlp_norm);
  v("mlp", mlp);
  v("moe", moe);
  v("mlp_output_norm", mlp_output_norm);
  v("attention_dropout", attention_dropout);
  v("mlp_dropout", mlp_dropout);
}

}  // namespace ingot::nn
