#include "ingot/models/mixtral.h"

#include "ingot/base/json_library.h"
#include "ingot/models/expert_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig mixtral_start() {
  DecoderConfig c;
  c.architecture = "mixtral";
  c.moe.experts = 8;
  return c;
}

DecoderConfig read_mixtral(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = mixtral_start();
  read_usual(json, file,
             {.vocab = 32000,
              .width = 4096,
              .hidden = 14336,
              .layers = 32,
              .heads = 32,
              .kv_heads = 8,
              .context = 131072,
              .norm_eps = 1e-5,
              .rope_base = 1e6},
             c);
  const ConfigKeys keys{json, file};
  c.window = keys.integer("sliding_window", 0);
  c.moe.experts = keys.size("num_local_experts", 8);
  c.moe.top_k = keys.size("num_experts_per_tok", 2);
  c.moe.renormalise = true;
  read_balance(json, file, c);
  return complete(c);
}

void write_mixtral(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "mixtral", "MixtralForCausalLM", out);
  out["sliding_window"] = nullptr;
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
  out["num_local_experts"] = c.moe.experts;
  out["num_experts_per_tok"] = c.moe.top_k;
  write_balance(c, out);
}

LayerParts layer_parts(const DecoderConfig& c) {
  LayerParts parts = joined(norm_parts(), attention_parts(c));
  parts.push_back({"block_sparse_moe.gate", {"moe.router"}});
  for (int64_t e = 0; e < c.moe.experts; ++e) {
    const std::string number = std::to_string(e);
    parts = joined(std::move(parts), gated_parts("block_sparse_moe.experts." + number,
                                                 "moe.experts." + number, {"w1", "w3", "w2"}));
  }
  return parts;
}

NameMap mixtral_names(const DecoderConfig& c) { return llama_names(c, layer_parts(c)); }

}  // namespace

Architecture mixtral_architecture() {
  return {"mixtral", read_mixtral, write_mixtral, mixtral_names, llama_spelled, mixtral_start};
}

}  // namespace ingot
