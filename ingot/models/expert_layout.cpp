#include "ingot/models/expert_layout.h"

#include <nlohmann/json.hpp>

#include "ingot/base/describe.h"
#include "ingot/base/json.h"
#include "ingot/models/published_config.h"

namespace ingot {

DecoderConfig read_llama_words(const nlohmann::json& json, const std::string& file,
                               const ExpertDefaults& missing) {
  const auto integer = [&](const char* key, int64_t fallback) {
    return json_field_or<int64_t>(json, key, fallback, file);
  };
  DecoderConfig c;
  c.vocab = integer("vocab_size", missing.vocab);
  c.width = integer("hidden_size", missing.width);
  c.layers = integer("num_hidden_layers", missing.layers);
  c.heads = integer("num_attention_heads", missing.heads);
  c.kv_heads = integer("num_key_value_heads",
                       json.contains("num_key_value_heads") ? c.heads : missing.kv_heads);
  c.head_dim = integer("head_dim", 0);
  c.hidden = integer("intermediate_size", missing.hidden);
  c.context = integer("max_position_embeddings", missing.context);
  c.norm_eps = json_field_or<double>(json, "rms_norm_eps", missing.norm_eps, file);
  c.activation =
      activation_from(json_field_or<std::string>(json, "hidden_act", "silu", file), true);
  nlohmann::json turning = json;
  if (!turning.contains("rope_theta")) {
    turning["rope_theta"] = missing.rope_base;
  }
  c.rope = rotary_from(turning, file);
  c.tied = json_field_or<bool>(json, "tie_word_embeddings", false, file);
  c.attention_bias = json_field_or<bool>(json, "attention_bias", false, file);
  c.output_bias = c.attention_bias;
  c.padding_id = integer("pad_token_id", -1);
  return c;
}

DecoderConfig completed(DecoderConfig config, const std::string& file) {
  const Fields fields = fields_of(config);
  try {
    for (const Field& field : fields.all()) {
      field.checked(field.get());
    }
    return complete(config);
  } catch (Error& error) {
    error.within(concat("while reading ", file));
    throw;
  }
}

void write_llama_words(const DecoderConfig& c, nlohmann::json& out) {
  out["vocab_size"] = c.vocab;
  out["hidden_size"] = c.width;
  out["num_hidden_layers"] = c.layers;
  out["num_attention_heads"] = c.heads;
  out["num_key_value_heads"] = c.kv_heads;
  out["head_dim"] = c.head_dim;
  out["intermediate_size"] = c.hidden;
  out["max_position_embeddings"] = c.context;
  out["hidden_act"] = *activation_to(*c.activation);
  out["rms_norm_eps"] = *c.norm_eps;
  rotary_to(c.rope, out);
  out["tie_word_embeddings"] = *c.tied;
  if (c.padding_id >= 0) {
    out["pad_token_id"] = c.padding_id;
  }
}

std::string unlike_llama(const DecoderConfig& c) {
  if (*c.norm != "rms" || c.norm_position != "pre" || *c.positions != "rope" ||
      c.rope.fraction != 1) {
    return "it has RMS norms before each half and rotates whole heads";
  }
  if (*c.attention_bias != *c.output_bias || *c.mlp_bias) {
    return "it has biases on all maps of attention or on none, and on no other";
  }
  if (!nn::is_gated(nn::activation_named(*c.activation)) || !activation_to(*c.activation)) {
    return "it has no activation " + *c.activation;
  }
  if (!c.residual || c.attention_softcap != 0 || c.logit_softcap != 0 || c.embedding_scale != 1 ||
      c.attention_scale != 0 || c.scale_by_layer) {
    return "it has none of softcaps, embedding_scale, attention_scale, scale_by_layer";
  }
  return "";
}

void read_balance(const nlohmann::json& json, const std::string& file, DecoderConfig& c) {
  const bool on = json_field_or<bool>(json, "output_router_logits", false, file);
  c.moe.balance_span = "model";
  c.moe.balance = on ? json_field_or<double>(json, "router_aux_loss_coef", 0.001, file) : 0.0;
}

void write_balance(const DecoderConfig& c, nlohmann::json& out) {
  out["output_router_logits"] = *c.moe.balance > 0;
  if (*c.moe.balance > 0) {
    out["router_aux_loss_coef"] = *c.moe.balance;
  }
}

void LayerNames::tensor(const std::string& theirs, const std::string& ours) {
  map_.pairs.push_back(
      {"model.layers." + layer_ + "." + theirs, {"layers." + layer_ + "." + ours}});
}

void LayerNames::pair(const std::string& theirs, const std::string& ours, bool bias) {
  tensor(theirs + ".weight", ours + ".weight");
  if (bias) {
    tensor(theirs + ".bias", ours + ".bias");
  }
}

void LayerNames::gated(const std::string& theirs, const std::string& ours,
                       const GatedNames& names) {
  pair(theirs + "." + names.gate, ours + ".gate");
  pair(theirs + "." + names.up, ours + ".up");
  pair(theirs + "." + names.down, ours + ".down");
}

NameMap llama_frame(const DecoderConfig& c,
                    void (*add)(const DecoderConfig&, int64_t layer, LayerNames& names)) {
  NameMap map;
  map.pairs.push_back({"model.embed_tokens.weight", {"embedding.weight"}});
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    LayerNames names(map, layer);
    names.pair("input_layernorm", "attention_norm");
    names.pair("post_attention_layernorm", "mlp_norm");
    add(c, layer, names);
  }
  map.pairs.push_back({"model.norm.weight", {"norm.weight"}});
  map.ignored = {"**.rotary_emb.inv_freq"};
  if (*c.tied) {
    map.ignored.emplace_back("lm_head.weight");
  } else {
    map.pairs.push_back({"lm_head.weight", {"head.weight"}});
  }
  return map;
}

void name_attention(const DecoderConfig& c, LayerNames& names) {
  names.pair("self_attn.q_proj", "attention.wq", *c.attention_bias);
  names.pair("self_attn.k_proj", "attention.wk", *c.attention_bias);
  names.pair("self_attn.v_proj", "attention.wv", *c.attention_bias);
  names.pair("self_attn.o_proj", "attention.wo", *c.output_bias);
  if (c.qk_norm) {
    names.pair("self_attn.q_norm", "attention.q_norm");
    names.pair("self_attn.k_norm", "attention.k_norm");
  }
}

void name_mlp(const DecoderConfig& c, int64_t layer, LayerNames& names) {
  const GatedNames words = {"gate_proj", "up_proj", "down_proj"};
  if (!has_experts(c.moe, layer)) {
    names.gated("mlp", "mlp", words);
    return;
  }
  names.pair("mlp.gate", "moe.router");
  if (*c.moe.correction) {
    names.tensor("mlp.gate.e_score_correction_bias", "moe.router.correction");
  }
  for (int64_t e = 0; e < c.moe.experts; ++e) {
    const std::string number = std::to_string(e);
    names.gated("mlp.experts." + number, "moe.experts." + number, words);
  }
  if (c.moe.shared > 0) {
    names.gated("mlp.shared_experts", "moe.shared", words);
  }
}

}  // namespace ingot
