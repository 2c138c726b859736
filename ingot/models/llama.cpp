#include "ingot/models/llama.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  const auto integer = [&](const char* key, int64_t fallback) {
    return json_field_or<int64_t>(json, key, fallback, file);
  };
  const auto flag = [&](const char* key, bool fallback) {
    return json_field_or<bool>(json, key, fallback, file);
  };
  DecoderConfig c;
  c.architecture = "llama";
  c.vocab = integer("vocab_size", 32000);
  c.width = integer("hidden_size", 4096);
  c.layers = integer("num_hidden_layers", 32);
  c.heads = integer("num_attention_heads", 32);
  c.kv_heads = integer("num_key_value_heads", c.heads);
  c.head_dim = integer("head_dim", 0);
  c.hidden = integer("intermediate_size", 11008);
  c.context = integer("max_position_embeddings", 2048);
  c.activation =
      activation_from(json_field_or<std::string>(json, "hidden_act", "silu", file), true);
  c.norm_eps = json_field_or<double>(json, "rms_norm_eps", 1e-6, file);
  c.rope = rotary_from(json, file);
  c.tied = flag("tie_word_embeddings", false);
  c.attention_bias = flag("attention_bias", false);
  c.output_bias = c.attention_bias;
  c.mlp_bias = flag("mlp_bias", false);
  c.padding_id = integer("pad_token_id", -1);
  return complete(c);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  out["architectures"] = {"LlamaForCausalLM"};
  out["model_type"] = "llama";
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
  out["attention_bias"] = *c.attention_bias;
  out["mlp_bias"] = *c.mlp_bias;
  if (c.padding_id >= 0) {
    out["pad_token_id"] = c.padding_id;
  }
}

std::string misfit(const DecoderConfig& c) {
  if (c.moe.experts > 0 || c.latent.kv_rank > 0) {
    return "llama has neither experts nor latent attention";
  }
  if (*c.norm != "rms" || c.norm_position != "pre" || *c.positions != "rope" ||
      c.rope.layout != "half_split" || c.rope.fraction != 1) {
    return "llama has RMS norms before each half and rotates whole heads, half_split";
  }
  if (*c.attention_bias != *c.output_bias) {
    return "llama has biases on all maps of attention or on none";
  }
  if (!nn::is_gated(nn::activation_named(*c.activation)) || !activation_to(*c.activation)) {
    return "llama has no activation " + *c.activation;
  }
  if (c.qk_norm || !c.residual || c.window != 0 || c.attention_softcap != 0 ||
      c.logit_softcap != 0 || c.embedding_scale != 1 || c.attention_scale != 0 ||
      c.scale_by_layer) {
    return "llama has none of qk_norm, window, softcaps, embedding_scale, attention_scale";
  }
  return "";
}

NameMap names(const DecoderConfig& c) {
  NameMap map;
  auto& pairs = map.pairs;
  pairs.push_back({"model.embed_tokens.weight", {"embedding.weight"}});
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto pair = [&](const std::string& theirs, const std::string& ours, bool bias) {
      for (const char* part : {".weight", ".bias"}) {
        if (part == std::string_view(".weight") || bias) {
          pairs.push_back({concat("model.layers.", layer, ".", theirs, part),
                           {concat("layers.", layer, ".", ours, part)}});
        }
      }
    };
    pair("input_layernorm", "attention_norm", false);
    pair("self_attn.q_proj", "attention.wq", *c.attention_bias);
    pair("self_attn.k_proj", "attention.wk", *c.attention_bias);
    pair("self_attn.v_proj", "attention.wv", *c.attention_bias);
    pair("self_attn.o_proj", "attention.wo", *c.output_bias);
    pair("post_attention_layernorm", "mlp_norm", false);
    pair("mlp.gate_proj", "mlp.gate", *c.mlp_bias);
    pair("mlp.up_proj", "mlp.up", *c.mlp_bias);
    pair("mlp.down_proj", "mlp.down", *c.mlp_bias);
  }
  pairs.push_back({"model.norm.weight", {"norm.weight"}});
  map.ignored = {"**.rotary_emb.inv_freq"};
  if (*c.tied) {
    map.ignored.emplace_back("lm_head.weight");
  } else {
    pairs.push_back({"lm_head.weight", {"head.weight"}});
  }
  return map;
}

std::string spelled(const std::string& published) { return published; }

}  // namespace

Architecture llama_architecture() { return {"llama", read, write, misfit, names, spelled}; }

}  // namespace ingot
