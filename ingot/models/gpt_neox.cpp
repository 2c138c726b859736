#include "ingot/models/gpt_neox.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig gpt_neox_start() {
  DecoderConfig c;
  c.architecture = "gpt_neox";
  c.norm = "layer";
  c.activation = "gelu";
  c.parallel = true;
  c.attention_bias = true;
  c.output_bias = true;
  c.mlp_bias = true;
  c.rope.fraction = 0.25;
  return c;
}

DecoderConfig read_gpt_neox(const nlohmann::json& json, const std::string& file) {
  const ConfigKeys keys{json, file};
  DecoderConfig c = gpt_neox_start();
  c.vocab = keys.size("vocab_size", 50432);
  c.width = keys.size("hidden_size", 6144);
  c.hidden = keys.size("intermediate_size", 24576);
  c.layers = keys.layers("num_hidden_layers", 44);
  c.heads = keys.size("num_attention_heads", 64);
  c.context = keys.size("max_position_embeddings", 2048);
  c.activation = activation_from(keys.text("hidden_act", "gelu"), false);
  c.norm_eps = keys.number("layer_norm_eps", 1e-5);
  c.rope = rotary_from(json, file, keys.number("rotary_emb_base", 10000),
                       keys.number("rotary_pct", 0.25));
  c.parallel = keys.flag("use_parallel_residual", true);
  c.tied = keys.flag("tie_word_embeddings", false);
  c.attention_bias = keys.flag("attention_bias", true);
  c.output_bias = c.attention_bias;
  return complete(c);
}

void write_gpt_neox(const DecoderConfig& c, nlohmann::json& out) {
  out["architectures"] = {"GPTNeoXForCausalLM"};
  out["model_type"] = "gpt_neox";
  out["vocab_size"] = c.vocab;
  out["hidden_size"] = c.width;
  out["intermediate_size"] = c.hidden;
  out["num_hidden_layers"] = c.layers;
  out["num_attention_heads"] = c.heads;
  out["max_position_embeddings"] = c.context;
  activation_to(*c.activation, "hidden_act", out);
  out["layer_norm_eps"] = *c.norm_eps;
  rotary_to(c.rope, out);
  out["rotary_emb_base"] = c.rope.base;
  out["rotary_pct"] = c.rope.fraction;
  out["use_parallel_residual"] = c.parallel;
  out["tie_word_embeddings"] = *c.tied;
  write_attention_bias(c, out);
}

NameMap gpt_neox_names(const DecoderConfig& c) {
  const LayerParts parts = {{"input_layernorm", {"attention_norm"}, true},
                            {"post_attention_layernorm", {"mlp_norm"}, true},
                            {"attention.query_key_value",
                             {"attention.wq", "attention.wk", "attention.wv"},
                             *c.attention_bias,
                             c.heads},
                            {"attention.dense", {"attention.wo"}, *c.output_bias},
                            {"mlp.dense_h_to_4h", {"mlp.up"}, true},
                            {"mlp.dense_4h_to_h", {"mlp.down"}, true}};
  NameMap map;
  map.pairs.push_back({"gpt_neox.embed_in.weight", {"embedding.weight"}});
  add_layers(
      c, "gpt_neox.layers.", [&parts](int64_t) { return parts; }, map);
  map.pairs.push_back({"gpt_neox.final_layer_norm.weight", {"norm.weight"}});
  map.pairs.push_back({"gpt_neox.final_layer_norm.bias", {"norm.bias"}});
  map.ignored = {"gpt_neox.layers.*.attention.bias", "gpt_neox.layers.*.attention.masked_bias",
                 "gpt_neox.layers.*.attention.rotary_emb.inv_freq"};
  if (*c.tied) {
    map.tied.push_back({"embed_out.weight", {"embedding.weight"}});
  } else {
    map.pairs.push_back({"embed_out.weight", {"head.weight"}});
  }
  return map;
}

std::string gpt_neox_spelled(const std::string& published) {
  return published.starts_with("gpt_neox.") || published.starts_with("embed_out.")
             ? published
             : "gpt_neox." + published;
}

}  // namespace

Architecture gpt_neox_architecture() {
  return {"gpt_neox",     read_gpt_neox,    write_gpt_neox,
          gpt_neox_names, gpt_neox_spelled, gpt_neox_start};
}

}  // namespace ingot
