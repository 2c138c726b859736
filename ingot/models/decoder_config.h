#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/models/latent_config.h"
#include "ingot/models/moe_config.h"
#include "ingot/models/multi_token.h"
#include "ingot/nn/activation.h"
#include "ingot/nn/rotary.h"
#include "ingot/nn/transformer.h"

namespace ingot {

// The values of `architecture`.
std::vector<std::string> family_names();

// A decoder-only language model. `architecture` names the published family whose defaults stand for
// what is left open; start_of() (models/architecture.h) has those that are no open fields here.
struct DecoderConfig {
  std::string architecture = "llama";
  int64_t vocab = 256;    // V
  int64_t width = 256;    // D
  int64_t layers = 6;     // L
  int64_t heads = 8;      // H
  int64_t kv_heads = 0;   // K
  int64_t head_dim = 0;   // C
  int64_t hidden = 0;     // F
  int64_t context = 256;  // longest T

  std::optional<std::string> norm;
  std::optional<double> norm_eps;
  std::string norm_position = "pre";
  std::optional<std::string> activation;
  std::optional<std::string> positions;
  nn::RotaryConfig rope;
  std::optional<bool> tied;
  std::optional<bool> attention_bias;
  std::optional<bool> output_bias;
  std::optional<bool> mlp_bias;
  bool qk_norm = false;
  std::string qk_norm_span = "head";
  bool gain_difference = false;
  bool residual = true;
  bool parallel = false;
  double dropout = 0;

  int64_t window = 0;
  int64_t full_every = 0;
  std::optional<std::vector<int64_t>> windowed_layers;
  int64_t unrotated_every = 0;
  std::optional<std::vector<int64_t>> unrotated_layers;
  double attention_softcap = 0;
  double attention_scale = 0;
  bool scale_by_layer = false;
  double logit_softcap = 0;
  double embedding_scale = 1;
  int64_t padding_id = -1;
  MoeConfig moe;
  LatentConfig latent;
  MultiTokenConfig mtp;

  template <class V>
  void describe(V& v) {
    v("architecture", architecture, one_of(family_names()),
      "published family whose defaults the keys left out take");
    v("vocab", vocab, at_least(1), "tokens of the vocabulary");
    v("width", width, at_least(1), "width of the residual stream");
    v("layers", layers, at_least(0), "transformer layers");
    v("heads", heads, at_least(1), "query heads");
    v("kv_heads", kv_heads, at_least(0), "key and value heads; 0: as many as heads");
    v("head_dim", head_dim, at_least(0), "features of a head; 0: width / heads");
    v("hidden", hidden, at_least(0),
      "width of the feed-forward layer; 0: 4 width, gated 8/3 width in steps of 64");
    v("context", context, at_least(1), "longest sequence in tokens");
    v("norm", norm, one_of({"layer", "rms", "none"}), "kind of normalisation");
    v("norm_eps", norm_eps, above(0), "added to the variance or mean square");
    v("norm_position", norm_position, one_of({"pre", "post", "sandwich", "output"}),
      "before each half of a layer, after its residual, on both sides of it, or on what it adds");
    v("activation", activation, one_of(nn::activation_names()), "of the feed-forward layer");
    v("positions", positions, one_of({"none", "sinusoidal", "learned", "rope", "alibi"}),
      "how the order of tokens is told");
    v.group("rope", rope, "rotary positions");
    v("tied", tied, "whether the output map is the embedding");
    v("attention_bias", attention_bias, "biases of queries, keys and values");
    v("output_bias", output_bias, "bias of attention's output map");
    v("mlp_bias", mlp_bias, "biases of the feed-forward layer");
    v("qk_norm", qk_norm, "RMS norm of queries and keys");
    v("qk_norm_span", qk_norm_span, one_of({"head", "projection"}),
      "what qk_norm runs over: each head, or all of them together");
    v("gain_difference", gain_difference, "RMS norms store gains as their difference from 1");
    v("residual", residual, "whether a layer's halves are added to the stream or replace it");
    v("parallel", parallel, "whether both halves of a layer read its input");
    v("dropout", dropout, half_open(0, 1), "of the embeddings and of what layers add");
    v("window", window, at_least(0), "tokens that a token sees, itself included; 0: all");
    v("full_every", full_every, at_least(0),
      "every so-many-th layer has no window; 0: all layers have it");
    v("windowed_layers", windowed_layers, at_least(0),
      "layers with the window, counted from 0; not set: as full_every says");
    v("unrotated_every", unrotated_every, at_least(0),
      "every so-many-th layer goes without rope; 0: none does");
    v("unrotated_layers", unrotated_layers, at_least(0),
      "layers without rope, counted from 0; not set: as unrotated_every says");
    v("attention_softcap", attention_softcap, at_least(0), "c of c tanh(score / c); 0: none");
    v("attention_scale", attention_scale, at_least(0), "of the scores; 0: 1 / sqrt(head_dim)");
    v("scale_by_layer", scale_by_layer, "divide scores by the layer's number, counted from 1");
    v("logit_softcap", logit_softcap, at_least(0), "c of c tanh(logit / c); 0: none");
    v("embedding_scale", embedding_scale, at_least(0), "factor on the embeddings; 0: sqrt(width)");
    v("padding_id", padding_id, at_least(-1),
      "id whose embedding gets no gradient from look-ups; -1: none");
    v.group("moe", moe, "experts in place of feed-forward layers");
    v.group("latent", latent, "latent attention in place of the usual one");
    v.group("mtp", mtp, "heads that predict tokens beyond the next one");
  }
};

// The same with every open field filled in. Throws Error(config) where fields contradict each
// other.
DecoderConfig complete(DecoderConfig config);

// Features of a head that stand in rotary_tables' argument: of latent attention, those that turn.
int64_t rotary_width(const DecoderConfig& config);

// What one layer is built from; `layer` counts from 0. The config must be complete.
nn::TransformerOptions layer_options(const DecoderConfig& config, int64_t layer);

// Whether a layer sees only the window, and whether it turns queries and keys.
bool is_windowed(const DecoderConfig& config, int64_t layer);
bool is_rotated(const DecoderConfig& config, int64_t layer);

// The same model in one way of saying it: complete, layers listed where they differ, and fields
// without effect at their defaults. Two configurations of one model are equal in it.
DecoderConfig plainest(DecoderConfig config);

}  // namespace ingot
