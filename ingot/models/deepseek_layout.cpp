#include "ingot/models/deepseek_layout.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

// Missing means the architecture's, null means none.
int64_t optional_integer(const nlohmann::json& json, const char* key, int64_t missing,
                         int64_t of_null, const std::string& file) {
  return json_field_or<int64_t>(json, key, json.contains(key) ? of_null : missing, file);
}

void name_latent_attention(const DecoderConfig& c, LayerNames& names) {
  const bool bias = *c.attention_bias;
  if (c.latent.q_rank > 0) {
    names.pair("self_attn.q_a_proj", "attention.wq_a", bias);
    names.pair("self_attn.q_a_layernorm", "attention.q_norm");
    names.pair("self_attn.q_b_proj", "attention.wq");
  } else {
    names.pair("self_attn.q_proj", "attention.wq");
  }
  names.pair("self_attn.kv_a_proj_with_mqa", "attention.wkv_a", bias);
  names.pair("self_attn.kv_a_layernorm", "attention.kv_norm");
  names.pair("self_attn.kv_b_proj", "attention.wkv_b");
  names.pair("self_attn.o_proj", "attention.wo", bias);
}

void name_layer(const DecoderConfig& c, int64_t layer, LayerNames& names) {
  name_latent_attention(c, names);
  name_mlp(c, layer, names);
}

}  // namespace

void read_deepseek(const nlohmann::json& json, const std::string& file,
                   const DeepseekDefaults& missing, DecoderConfig& c) {
  const auto integer = [&](const char* key, int64_t fallback) {
    return json_field_or<int64_t>(json, key, fallback, file);
  };
  LatentConfig& latent = c.latent;
  latent.q_rank = optional_integer(json, "q_lora_rank", 1536, 0, file);
  latent.kv_rank = integer("kv_lora_rank", 512);
  latent.nope_dim = integer("qk_nope_head_dim", 128);
  latent.rope_dim = integer("qk_rope_head_dim", 64);
  latent.value_dim = integer("v_head_dim", 128);
  check(latent.kv_rank > 0, ErrorKind::config, file, ": kv_lora_rank must be above 0: got ",
        latent.kv_rank);
  c.head_dim = latent.nope_dim + latent.rope_dim;
  c.kv_heads = c.heads;
  MoeConfig& m = c.moe;
  m.experts = integer("n_routed_experts", missing.experts);
  m.shared = optional_integer(json, "n_shared_experts", missing.shared, 0, file);
  m.top_k = integer("num_experts_per_tok", missing.top_k);
  m.hidden = integer("moe_intermediate_size", missing.expert_hidden);
  m.dense_first = integer("first_k_dense_replace", missing.dense_first);
  m.groups = integer("n_group", missing.groups);
  m.groups_kept = integer("topk_group", missing.groups_kept);
  m.scale = json_field_or<double>(json, "routed_scaling_factor", missing.scale, file);
  m.balance = 0;
  refuse_if(integer("moe_layer_freq", 1) != 1, "moe_layer_freq", file);
}

void write_deepseek(const DecoderConfig& c, nlohmann::json& out) {
  write_llama_words(c, out);
  out["head_dim"] = c.latent.rope_dim;
  out["attention_bias"] = *c.attention_bias;
  out["q_lora_rank"] =
      c.latent.q_rank > 0 ? nlohmann::json(c.latent.q_rank) : nlohmann::json(nullptr);
  out["kv_lora_rank"] = c.latent.kv_rank;
  out["qk_nope_head_dim"] = c.latent.nope_dim;
  out["qk_rope_head_dim"] = c.latent.rope_dim;
  out["v_head_dim"] = c.latent.value_dim;
  out["n_routed_experts"] = c.moe.experts;
  out["n_shared_experts"] =
      c.moe.shared > 0 ? nlohmann::json(c.moe.shared) : nlohmann::json(nullptr);
  out["num_experts_per_tok"] = c.moe.top_k;
  out["moe_intermediate_size"] = c.moe.hidden;
  out["first_k_dense_replace"] = std::min(c.moe.dense_first, c.layers);
  out["n_group"] = c.moe.groups;
  out["topk_group"] = c.moe.groups_kept;
  out["routed_scaling_factor"] = c.moe.scale;
}

std::string unlike_deepseek(const DecoderConfig& c) {
  if (const std::string other = unlike_llama(c); !other.empty()) {
    return other;
  }
  if (c.latent.kv_rank == 0 || c.moe.experts == 0 || c.window > 0 || c.qk_norm) {
    return "it has latent attention and experts";
  }
  if (c.moe.every != 1 || !c.moe.dense_layers.empty()) {
    return "it has experts in all layers but the first";
  }
  return "";
}

NameMap deepseek_names(const DecoderConfig& c) { return llama_frame(c, name_layer); }

}  // namespace ingot
