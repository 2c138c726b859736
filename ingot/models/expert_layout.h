#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ingot/models/decoder_config.h"
#include "ingot/models/published_names.h"

namespace ingot {

// What the families with experts share: Llama's words for everything else.

// What a missing key means.
struct ExpertDefaults {
  int64_t vocab, width, layers, heads, kv_heads, hidden, context;
  double norm_eps, rope_base;
};

DecoderConfig read_llama_words(const nlohmann::json& json, const std::string& file,
                               const ExpertDefaults& missing);
// The config completed. Throws Error(config) naming the field that is out of its range.
DecoderConfig completed(DecoderConfig config, const std::string& file);
void write_llama_words(const DecoderConfig& config, nlohmann::json& out);
// "" if nothing but experts, latent attention, windows and QK norm sets a config apart from Llama.
std::string unlike_llama(const DecoderConfig& config);

// output_router_logits and router_aux_loss_coef: the balance loss, which the first switches on.
void read_balance(const nlohmann::json& json, const std::string& file, DecoderConfig& config);
void write_balance(const DecoderConfig& config, nlohmann::json& out);

// Their three words for gate, up and down of an expert.
struct GatedNames {
  std::string gate, up, down;
};

// Adds pairs of names below one layer.
class LayerNames {
 public:
  LayerNames(NameMap& map, int64_t layer) : map_(map), layer_(std::to_string(layer)) {}

  // theirs.weight with ours.weight, and the biases of both.
  void pair(const std::string& theirs, const std::string& ours, bool bias = false);
  // One tensor with one.
  void tensor(const std::string& theirs, const std::string& ours);
  void gated(const std::string& theirs, const std::string& ours, const GatedNames& names);

 private:
  NameMap& map_;
  std::string layer_;
};

// model.embed_tokens, the norms of every layer, model.norm and lm_head; `add` names the rest of a
// layer.
NameMap llama_frame(const DecoderConfig& config,
                    void (*add)(const DecoderConfig&, int64_t layer, LayerNames& names));
// self_attn.{q,k,v,o}_proj, and the norms of q and k where there are.
void name_attention(const DecoderConfig& config, LayerNames& names);
// mlp.{gate,up,down}_proj, or mlp.gate, mlp.experts and mlp.shared_experts.
void name_mlp(const DecoderConfig& config, int64_t layer, LayerNames& names);

}  // namespace ingot
