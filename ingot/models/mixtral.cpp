#include "ingot/models/mixtral.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/expert_layout.h"

namespace ingot {
namespace {

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = read_llama_words(json, file,
                                     {.vocab = 32000,
                                      .width = 4096,
                                      .layers = 32,
                                      .heads = 32,
                                      .kv_heads = 8,
                                      .hidden = 14336,
                                      .context = 131072,
                                      .norm_eps = 1e-5,
                                      .rope_base = 1e6});
  c.architecture = "mixtral";
  c.attention_bias = false;
  c.output_bias = false;
  c.window = json_field_or<int64_t>(json, "sliding_window", 0, file);
  c.moe.experts = json_field_or<int64_t>(json, "num_local_experts", 8, file);
  c.moe.top_k = json_field_or<int64_t>(json, "num_experts_per_tok", 2, file);
  c.moe.renormalise = true;
  read_balance(json, file, c);
  return completed(c, file);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  write_llama_words(c, out);
  out["architectures"] = {"MixtralForCausalLM"};
  out["model_type"] = "mixtral";
  out["sliding_window"] = c.window > 0 ? nlohmann::json(c.window) : nlohmann::json(nullptr);
  out["num_local_experts"] = c.moe.experts;
  out["num_experts_per_tok"] = c.moe.top_k;
  write_balance(c, out);
}

std::string misfit(const DecoderConfig& c) {
  const MoeConfig& m = c.moe;
  if (const std::string other = unlike_llama(c); !other.empty()) {
    return other;
  }
  if (c.qk_norm || c.latent.kv_rank > 0 || *c.attention_bias || c.rope.layout != "half_split") {
    return "mixtral has no qk_norm, latent attention or biases, and rotates half_split";
  }
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (!has_experts(m, layer)) {
      return "mixtral has experts in every layer";
    }
  }
  if (m.experts == 0 || m.hidden != c.hidden || m.shared > 0 || *m.score != "softmax" ||
      !*m.renormalise || m.scale != 1 || m.groups != 1 || *m.correction) {
    return "mixtral has renormalised softmax weights of experts as wide as hidden, ungrouped";
  }
  return "";
}

void name_layer(const DecoderConfig& c, int64_t /*layer*/, LayerNames& names) {
  name_attention(c, names);
  names.pair("block_sparse_moe.gate", "moe.router");
  for (int64_t e = 0; e < c.moe.experts; ++e) {
    const std::string number = std::to_string(e);
    names.gated("block_sparse_moe.experts." + number, "moe.experts." + number, {"w1", "w3", "w2"});
  }
}

NameMap names(const DecoderConfig& c) { return llama_frame(c, name_layer); }

std::string spelled(const std::string& published) { return published; }

}  // namespace

Architecture mixtral_architecture() { return {"mixtral", read, write, misfit, names, spelled}; }

}  // namespace ingot
