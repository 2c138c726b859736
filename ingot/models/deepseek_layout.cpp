#include "ingot/models/deepseek_layout.h"

#include "ingot/base/json_library.h"
#include "ingot/models/expert_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

LayerParts latent_parts(const DecoderConfig& c) {
  const bool bias = *c.attention_bias;
  LayerParts parts = {{"self_attn.kv_a_proj_with_mqa", {"attention.wkv_a"}, bias},
                      {"self_attn.kv_a_layernorm", {"attention.kv_norm"}},
                      {"self_attn.kv_b_proj", {"attention.wkv_b"}},
                      {"self_attn.o_proj", {"attention.wo"}, bias}};
  if (c.latent.q_rank > 0) {
    parts.push_back({"self_attn.q_a_proj", {"attention.wq_a"}, bias});
    parts.push_back({"self_attn.q_a_layernorm", {"attention.q_norm"}});
    parts.push_back({"self_attn.q_b_proj", {"attention.wq"}});
  } else {
    parts.push_back({"self_attn.q_proj", {"attention.wq"}});
  }
  return parts;
}

nlohmann::json null_if_none(int64_t value) {
  return value > 0 ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

int64_t dense_before_experts(const DecoderConfig& c) {
  int64_t layer = 0;
  while (layer < c.layers && !has_experts(c.moe, layer)) {
    ++layer;
  }
  return layer;
}

void read_deepseek(const nlohmann::json& json, const std::string& file, const DeepseekKeys& missing,
                   DecoderConfig& c) {
  const ConfigKeys keys{json, file};
  read_attention_bias(json, file, c);
  LatentConfig& latent = c.latent;
  latent.q_rank = keys.integer("q_lora_rank", 1536, 0);
  latent.kv_rank = keys.size("kv_lora_rank", 512);
  latent.nope_dim = keys.size("qk_nope_head_dim", 128);
  latent.rope_dim = keys.size("qk_rope_head_dim", 64);
  latent.value_dim = keys.size("v_head_dim", 128);
  c.head_dim = latent.nope_dim + latent.rope_dim;
  c.kv_heads = c.heads;
  MoeConfig& m = c.moe;
  m.experts = keys.size("n_routed_experts", missing.experts);
  m.shared = keys.integer("n_shared_experts", missing.shared, 0);
  m.top_k = keys.size("num_experts_per_tok", missing.top_k);
  m.hidden = keys.size("moe_intermediate_size", missing.expert_hidden);
  m.dense_first = keys.integer("first_k_dense_replace", missing.dense_first);
  m.groups = keys.size("n_group", missing.groups);
  m.groups_kept = keys.size("topk_group", missing.groups_kept);
  m.scale = keys.number("routed_scaling_factor", missing.scale);
  m.balance = 0;
  refuse_if(keys.integer("moe_layer_freq", 1) != 1, "moe_layer_freq", file);
}

void write_deepseek(const DecoderConfig& c, const char* model_type, const char* class_name,
                    nlohmann::json& out) {
  write_usual(c, model_type, class_name, out);
  write_attention_bias(c, out);
  out["head_dim"] = c.latent.rope_dim;
  out["q_lora_rank"] = null_if_none(c.latent.q_rank);
  out["kv_lora_rank"] = c.latent.kv_rank;
  out["qk_nope_head_dim"] = c.latent.nope_dim;
  out["qk_rope_head_dim"] = c.latent.rope_dim;
  out["v_head_dim"] = c.latent.value_dim;
  out["n_routed_experts"] = c.moe.experts;
  out["n_shared_experts"] = null_if_none(c.moe.shared);
  out["num_experts_per_tok"] = c.moe.top_k;
  out["moe_intermediate_size"] = c.moe.hidden;
  out["first_k_dense_replace"] = dense_before_experts(c);
  out["n_group"] = c.moe.groups;
  out["topk_group"] = c.moe.groups_kept;
  out["routed_scaling_factor"] = c.moe.scale;
}

LayerParts deepseek_parts(const DecoderConfig& c, int64_t layer) {
  return joined(joined(norm_parts(), latent_parts(c)), expert_parts(c, layer));
}

NameMap deepseek_names(const DecoderConfig& c) {
  return llama_names(c, [&c](int64_t layer) { return deepseek_parts(c, layer); });
}

}  // namespace ingot
