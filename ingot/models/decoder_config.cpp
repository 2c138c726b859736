#include "ingot/models/decoder_config.h"

#include <cmath>

namespace ingot {
namespace {

nn::NormKind norm_kind(const std::string& name) {
  if (name == "layer") {
    return nn::NormKind::layer;
  }
  return name == "rms" ? nn::NormKind::rms : nn::NormKind::none;
}

nn::NormPosition norm_position(const std::string& name) {
  if (name == "post") {
    return nn::NormPosition::post;
  }
  return name == "sandwich" ? nn::NormPosition::sandwich : nn::NormPosition::pre;
}

nn::Bias bias_if(bool yes) { return yes ? nn::Bias::yes : nn::Bias::no; }

int64_t usual_hidden(const DecoderConfig& c) {
  if (!nn::is_gated(nn::activation_named(*c.activation))) {
    return 4 * c.width;
  }
  return (8 * c.width / 3 + 63) / 64 * 64;
}

template <class T>
void fill(std::optional<T>& field, T value) {
  field = field.value_or(std::move(value));
}

void check_consistent(const DecoderConfig& c) {
  check(c.heads % c.kv_heads == 0, ErrorKind::config,
        "model: heads must be a multiple of kv_heads: ", "heads is ", c.heads, ", kv_heads is ",
        c.kv_heads);
  check(*c.positions != "sinusoidal" || c.width % 2 == 0, ErrorKind::config,
        "model: sinusoidal positions need an even width: width is ", c.width);
  check(*c.positions != "rope" || nn::rotated_features(c.rope, rotary_width(c)) > 0,
        ErrorKind::config, "model: rope turns no feature: head_dim is ", rotary_width(c),
        ", rope.fraction is ", c.rope.fraction);
  check(c.padding_id < c.vocab, ErrorKind::config,
        "model: padding_id is outside the vocabulary: padding_id is ", c.padding_id, ", vocab is ",
        c.vocab);
}

// Latent attention has its own kind of heads; what it does not compute is refused.
void check_latent(const DecoderConfig& c) {
  check(*c.positions == "rope" || *c.positions == "none", ErrorKind::config,
        "model.latent: takes positions rope or none: positions is ", *c.positions);
  check(c.rope.fraction == 1, ErrorKind::config,
        "model.latent: rope_dim says what turns: rope.fraction is ", c.rope.fraction, ", not 1");
  check(c.window == 0 && c.attention_softcap == 0 && c.attention_scale == 0 && !c.qk_norm &&
            !c.scale_by_layer,
        ErrorKind::config, "model.latent: has none of window, attention_softcap, attention_scale, ",
        "scale_by_layer and qk_norm");
}

// What the families of experts fix besides the fields they leave open.
void set_family(DecoderConfig& c) {
  c.qk_norm = c.qk_norm || c.architecture == "qwen3_moe";
  if (c.architecture == "deepseek_v2") {
    c.rope.layout = "interleaved";
  }
}

}  // namespace

DecoderConfig complete(DecoderConfig config) {
  DecoderConfig& c = config;
  const bool gpt2 = c.architecture == "gpt2";
  fill<std::string>(c.norm, gpt2 ? "layer" : "rms");
  fill(c.norm_eps, 1e-5);
  fill<std::string>(c.activation, gpt2 ? "gelu_tanh" : "swiglu");
  fill<std::string>(c.positions, gpt2 ? "learned" : "rope");
  fill(c.tied, gpt2);
  fill(c.attention_bias, gpt2);
  fill(c.output_bias, gpt2);
  fill(c.mlp_bias, gpt2);
  c.kv_heads = c.kv_heads > 0 ? c.kv_heads : c.heads;
  if (c.head_dim == 0) {
    check(c.width % c.heads == 0, ErrorKind::config,
          "model: width must be a multiple of heads: width is ", c.width, ", heads is ", c.heads,
          "; or set head_dim");
    c.head_dim = c.width / c.heads;
  }
  c.hidden = c.hidden > 0 ? c.hidden : usual_hidden(c);
  set_family(c);
  complete_moe(c.moe, c.architecture, c.hidden);
  complete_latent(c.latent, c.architecture.starts_with("deepseek"), c.head_dim);
  if (c.latent.kv_rank > 0) {
    check_latent(c);
  }
  check_consistent(c);
  return config;
}

int64_t rotary_width(const DecoderConfig& c) {
  return c.latent.kv_rank > 0 ? c.latent.rope_dim : c.head_dim;
}

nn::TransformerOptions layer_options(const DecoderConfig& c, int64_t layer) {
  nn::TransformerOptions o;
  o.attention.width = c.width;
  o.attention.heads = c.heads;
  o.attention.kv_heads = c.kv_heads;
  o.attention.head_dim = c.head_dim;
  o.attention.bias = bias_if(*c.attention_bias);
  o.attention.output_bias = bias_if(*c.output_bias);
  o.attention.qk_norm = c.qk_norm ? nn::NormKind::rms : nn::NormKind::none;
  o.attention.norm_eps = *c.norm_eps;
  o.attention.rope_layout = nn::rotary_layout(c.rope);
  o.attention.scale =
      c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_dim));
  if (c.scale_by_layer) {
    o.attention.scale /= static_cast<double>(layer + 1);
  }
  o.attention.window = c.window;
  o.attention.softcap = c.attention_softcap;
  o.mlp.width = c.width;
  o.mlp.hidden = c.hidden;
  o.mlp.activation = nn::activation_named(*c.activation);
  o.mlp.bias = bias_if(*c.mlp_bias);
  if (c.latent.kv_rank > 0) {
    o.latent = latent_shape(c.latent, c.rope);
    o.latent->width = c.width;
    o.latent->heads = c.heads;
    o.latent->bias = bias_if(*c.attention_bias);
  }
  if (has_experts(c.moe, layer)) {
    o.moe = moe_options(c.moe, c.width, o.mlp.activation);
  }
  o.norm = norm_kind(*c.norm);
  o.norm_eps = *c.norm_eps;
  o.norm_position = norm_position(c.norm_position);
  o.residual = c.residual;
  o.dropout = c.dropout;
  return o;
}

}  // namespace ingot
