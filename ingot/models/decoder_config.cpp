#include "ingot/models/decoder_config.h"

#include <algorithm>
#include <cmath>

#include "ingot/models/architecture.h"

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
  if (name == "output") {
    return nn::NormPosition::output;
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

template <class T, class U>
void fill(std::optional<T>& field, const std::optional<T>& family, U otherwise) {
  field = field.value_or(family.value_or(T(otherwise)));
}

void check_layers(const char* name, const std::optional<std::vector<int64_t>>& listed,
                  int64_t layers) {
  for (const int64_t layer : listed.value_or(std::vector<int64_t>())) {
    check(layer >= 0 && layer < layers, ErrorKind::config, "model: ", name,
          " names a layer that is not there: ", layer, ", counted from 0 of ", layers);
  }
}

// Stretches that divide by a difference or a logarithm which must not be 0.
void check_stretch(const DecoderConfig& c) {
  const nn::RotaryConfig& r = c.rope;
  check(r.scaling != "llama3" || r.low_frequency < r.high_frequency, ErrorKind::config,
        "model: rope.low_frequency must be below rope.high_frequency: low is ", r.low_frequency,
        ", high is ", r.high_frequency);
  check(r.scaling != "yarn" || r.base > 1, ErrorKind::config,
        "model: yarn needs a rope.base above 1: got ", r.base);
  const int64_t trained = r.original_context > 0 ? r.original_context : c.context;
  check(r.scaling != "longrope" || trained > 1, ErrorKind::config,
        "model: longrope needs an original_context above 1: got ", trained);
}

void check_longrope(const DecoderConfig& c) {
  const int64_t pairs = nn::rotated_features(c.rope, rotary_width(c)) / 2;
  for (const auto& [name, factors] : {std::pair{"short_factors", &c.rope.short_factors},
                                      {"long_factors", &c.rope.long_factors}}) {
    check(static_cast<int64_t>(factors->size()) == pairs, ErrorKind::config, "model: rope.", name,
          " needs one factor for every pair that turns: has ", factors->size(), ", head_dim ",
          rotary_width(c), " turns ", pairs);
  }
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
  check(*c.positions != "rope" || (c.rope.scaling != "ntk" && c.rope.scaling != "dynamic") ||
            nn::rotated_features(c.rope, rotary_width(c)) > 2,
        ErrorKind::config, "model: rope.scaling ", c.rope.scaling,
        " needs two pairs that turn: head_dim is ", rotary_width(c));
  if (*c.positions == "rope") {
    check_stretch(c);
    if (c.rope.scaling == "longrope") {
      check_longrope(c);
    }
  }
  check(!c.parallel || c.residual, ErrorKind::config,
        "model: parallel halves are added to the stream: residual is false; leave one out");
  check(!c.parallel || c.norm_position != "post", ErrorKind::config,
        "model: parallel halves have no norm after their residual: norm_position is post");
  check_layers("windowed_layers", c.windowed_layers, c.layers);
  check_layers("unrotated_layers", c.unrotated_layers, c.layers);
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

// What reads the same in both: nothing of experts in a dense model, else the layers that are dense
// listed, and the way groups are scored where there are groups.
MoeConfig plain_experts(const MoeConfig& config, int64_t layers) {
  if (config.experts == 0) {
    return {};
  }
  MoeConfig m = config;
  m.dense_first = 0;
  m.every = 1;
  m.dense_layers.clear();
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (!has_experts(config, layer)) {
      m.dense_layers.push_back(layer);
    }
  }
  if (m.groups == 1) {
    m.groups_kept = 1;
    m.group_score = "best";
  }
  return m;
}

}  // namespace

DecoderConfig complete(DecoderConfig config) {
  DecoderConfig& c = config;
  const DecoderConfig family = start_of(c.architecture);
  fill(c.norm, family.norm, "rms");
  fill(c.norm_eps, family.norm_eps, 1e-5);
  fill(c.activation, family.activation, "swiglu");
  fill(c.positions, family.positions, "rope");
  fill(c.tied, family.tied, false);
  fill(c.attention_bias, family.attention_bias, false);
  fill(c.output_bias, family.output_bias, false);
  fill(c.mlp_bias, family.mlp_bias, false);
  if (c.embedding_scale == 0) {
    c.embedding_scale = std::sqrt(static_cast<double>(c.width));
  }
  c.kv_heads = c.kv_heads > 0 ? c.kv_heads : c.heads;
  if (c.head_dim == 0) {
    check(c.width % c.heads == 0, ErrorKind::config,
          "model: width must be a multiple of heads: width is ", c.width, ", heads is ", c.heads,
          "; or set head_dim");
    c.head_dim = c.width / c.heads;
  }
  c.hidden = c.hidden > 0 ? c.hidden : usual_hidden(c);
  complete_moe(c.moe, family.moe, c.hidden);
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
  o.attention.qk_norm_span =
      c.qk_norm_span == "head" ? nn::QkNormSpan::head : nn::QkNormSpan::projection;
  o.attention.norm_eps = *c.norm_eps;
  o.attention.gain_offset = c.gain_difference ? 1 : 0;
  o.attention.rope_layout = nn::rotary_layout(c.rope);
  o.attention.scale =
      c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_dim));
  if (c.scale_by_layer) {
    o.attention.scale /= static_cast<double>(layer + 1);
  }
  o.attention.window = is_windowed(c, layer) ? c.window : 0;
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
  o.gain_offset = c.gain_difference ? 1 : 0;
  o.norm_position = norm_position(c.norm_position);
  o.residual = c.residual;
  o.parallel = c.parallel;
  o.dropout = c.dropout;
  return o;
}

bool is_windowed(const DecoderConfig& c, int64_t layer) {
  if (c.window == 0) {
    return false;
  }
  if (c.windowed_layers) {
    return std::ranges::count(*c.windowed_layers, layer) > 0;
  }
  return c.full_every == 0 || (layer + 1) % c.full_every != 0;
}

bool is_rotated(const DecoderConfig& c, int64_t layer) {
  if (c.unrotated_layers) {
    return std::ranges::count(*c.unrotated_layers, layer) == 0;
  }
  return c.unrotated_every == 0 || (layer + 1) % c.unrotated_every != 0;
}

DecoderConfig plainest(DecoderConfig config) {
  DecoderConfig c = complete(std::move(config));
  std::vector<int64_t> windowed;
  std::vector<int64_t> unrotated;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (is_windowed(c, layer)) {
      windowed.push_back(layer);
    }
    if (!is_rotated(c, layer)) {
      unrotated.push_back(layer);
    }
  }
  c.full_every = 0;
  c.unrotated_every = 0;
  const bool all = static_cast<int64_t>(windowed.size()) == c.layers;
  c.window = windowed.empty() ? 0 : c.window;
  if (c.rope.local_base > 0 && all) {
    c.rope = nn::local_rotary(c.rope);
  }
  if (windowed.empty() || (c.rope.scaling == "none" && c.rope.local_base == c.rope.base)) {
    c.rope.local_base = 0;
  }
  c.windowed_layers.reset();
  if (!windowed.empty() && !all) {
    c.windowed_layers = std::move(windowed);
  }
  c.unrotated_layers.reset();
  if (!unrotated.empty() && *c.positions == "rope") {
    c.unrotated_layers = std::move(unrotated);
  }
  c.rope = *c.positions == "rope" ? nn::plain_rotary(c.rope, rotary_width(c)) : nn::RotaryConfig();
  const double usual_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  if (std::abs(c.attention_scale - usual_scale) < 1e-12 * usual_scale) {
    c.attention_scale = 0;
  }
  c.qk_norm_span = c.qk_norm ? c.qk_norm_span : "head";
  c.gain_difference = c.gain_difference && (c.qk_norm || *c.norm == "rms");
  c.moe = plain_experts(c.moe, c.layers);
  c.mtp = c.mtp.depth > 0 ? c.mtp : MultiTokenConfig();
  if (c.latent.kv_rank > 0) {  // has heads of its own
    c.kv_heads = c.heads;
    c.head_dim = c.latent.nope_dim + c.latent.rope_dim;
  }
  return c;
}

}  // namespace ingot
