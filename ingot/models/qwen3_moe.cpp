#include "ingot/models/qwen3_moe.h"

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/expert_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig qwen3_moe_start() {
  DecoderConfig c;
  c.architecture = "qwen3_moe";
  c.qk_norm = true;
  c.moe.experts = 8;
  return c;
}

DecoderConfig read_qwen3_moe(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = qwen3_moe_start();
  read_usual(json, file,
             {.vocab = 151936,
              .width = 2048,
              .hidden = 6144,
              .layers = 24,
              .heads = 32,
              .kv_heads = 4,
              .context = 32768},
             c);
  read_attention_bias(json, file, c);
  c.window = switched_window(json, file, 4096);
  const ConfigKeys keys{json, file};
  c.moe.experts = keys.size("num_experts", 128);
  c.moe.top_k = keys.size("num_experts_per_tok", 8);
  c.moe.hidden = keys.size("moe_intermediate_size", 768);
  c.moe.every = keys.size("decoder_sparse_step", 1);
  c.moe.dense_layers =
      json_field_or<std::vector<int64_t>>(json, "mlp_only_layers", std::vector<int64_t>(), file);
  c.moe.renormalise = keys.flag("norm_topk_prob", false);
  read_balance(json, file, c);
  return complete(c);
}

void write_qwen3_moe(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "qwen3_moe", "Qwen3MoeForCausalLM", out);
  write_attention_bias(c, out);
  out["use_sliding_window"] = c.window > 0;
  out["sliding_window"] = nullptr;
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
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

NameMap qwen3_moe_names(const DecoderConfig& c) {
  return llama_names(c, [&c](int64_t layer) {
    return joined(joined(norm_parts(), attention_parts(c)), expert_parts(c, layer));
  });
}

}  // namespace

Architecture qwen3_moe_architecture() {
  return {"qwen3_moe",     read_qwen3_moe, write_qwen3_moe,
          qwen3_moe_names, llama_spelled,  qwen3_moe_start};
}

}  // namespace ingot
