#include "ingot/models/qwen3_moe.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/expert_layout.h"

namespace ingot {
namespace {

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = read_llama_words(json, file,
                                     {.vocab = 151936,
                                      .width = 2048,
                                      .layers = 24,
                                      .heads = 32,
                                      .kv_heads = 4,
                                      .hidden = 6144,
                                      .context = 32768,
                                      .norm_eps = 1e-6,
                                      .rope_base = 10000});
  const auto integer = [&](const char* key, int64_t fallback) {
    return json_field_or<int64_t>(json, key, fallback, file);
  };
  c.architecture = "qwen3_moe";
  c.qk_norm = true;
  const bool windowed = json_field_or<bool>(json, "use_sliding_window", false, file);
  c.window = windowed ? integer("sliding_window", 4096) : 0;
  c.moe.experts = integer("num_experts", 128);
  c.moe.top_k = integer("num_experts_per_tok", 8);
  c.moe.hidden = integer("moe_intermediate_size", 768);
  c.moe.every = integer("decoder_sparse_step", 1);
  c.moe.dense_layers =
      json_field_or<std::vector<int64_t>>(json, "mlp_only_layers", std::vector<int64_t>(), file);
  c.moe.renormalise = json_field_or<bool>(json, "norm_topk_prob", false, file);
  read_balance(json, file, c);
  return completed(c, file);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  write_llama_words(c, out);
  out["architectures"] = {"Qwen3MoeForCausalLM"};
  out["model_type"] = "qwen3_moe";
  out["attention_bias"] = *c.attention_bias;
  out["use_sliding_window"] = c.window > 0;
  out["sliding_window"] = c.window > 0 ? nlohmann::json(c.window) : nlohmann::json(nullptr);
  out["num_experts"] = c.moe.experts;
  out["num_experts_per_tok"] = c.moe.top_k;
  out["moe_intermediate_size"] = c.moe.hidden;
  out["decoder_sparse_step"] = c.moe.every;
  std::vector<int64_t> dense = c.moe.dense_layers;
  for (int64_t layer = 0; layer < std::min(c.moe.dense_first, c.layers); ++layer) {
    dense.push_back(layer);
  }
  out["mlp_only_layers"] = dense;
  out["norm_topk_prob"] = *c.moe.renormalise;
  write_balance(c, out);
}

std::string misfit(const DecoderConfig& c) {
  const MoeConfig& m = c.moe;
  if (const std::string other = unlike_llama(c); !other.empty()) {
    return other;
  }
  if (!c.qk_norm || c.latent.kv_rank > 0 || c.rope.layout != "half_split") {
    return "qwen3_moe has qk_norm, no latent attention, and rotates half_split";
  }
  if (m.experts == 0 || m.shared > 0 || *m.score != "softmax" || m.scale != 1 || m.groups != 1 ||
      *m.correction) {
    return "qwen3_moe has softmax weights, no groups and no shared experts";
  }
  return "";
}

void name_layer(const DecoderConfig& c, int64_t layer, LayerNames& names) {
  name_attention(c, names);
  name_mlp(c, layer, names);
}

NameMap names(const DecoderConfig& c) { return llama_frame(c, name_layer); }

std::string spelled(const std::string& published) { return published; }

}  // namespace

Architecture qwen3_moe_architecture() { return {"qwen3_moe", read, write, misfit, names, spelled}; }

}  // namespace ingot
