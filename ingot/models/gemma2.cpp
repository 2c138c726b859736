#include "ingot/models/gemma2.h"

#include <cmath>

#include "ingot/base/json_library.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig gemma2_start() {
  DecoderConfig c;
  c.architecture = "gemma2";
  c.norm_position = "sandwich";
  c.activation = "geglu_tanh";
  c.gain_difference = true;
  c.embedding_scale = 0;  // sqrt(width)
  c.tied = true;
  c.window = 4096;
  c.full_every = 2;
  c.attention_softcap = 50;
  c.logit_softcap = 30;
  return c;
}

DecoderConfig read_gemma2(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = gemma2_start();
  read_usual(json, file,
             {.vocab = 256000,
              .width = 2304,
              .hidden = 9216,
              .layers = 26,
              .heads = 8,
              .kv_heads = 4,
              .head_dim = 256,
              .context = 8192,
              .padding_id = 0,
              .tied = true,
              .activation_key = "hidden_activation",
              .activation = "gelu_pytorch_tanh"},
             c);
  read_attention_bias(json, file, c);
  read_gemma2_keys(json, file, 30, c);
  c.attention_softcap = ConfigKeys{json, file}.number("attn_logit_softcapping", 50, 0);
  return complete(c);
}

void write_gemma2(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "gemma2", "Gemma2ForCausalLM", out, "hidden_activation");
  write_attention_bias(c, out);
  write_gemma2_keys(c, out);
  out["attn_logit_softcapping"] = nullptr;
  if (c.attention_softcap > 0) {
    out["attn_logit_softcapping"] = c.attention_softcap;
  }
}

NameMap gemma2_names(const DecoderConfig& c) { return llama_names(c, gemma2_parts(c)); }

}  // namespace

void read_gemma2_keys(const nlohmann::json& json, const std::string& file, double logit_softcap,
                      DecoderConfig& c) {
  const ConfigKeys keys{json, file};
  const double scalar = keys.number("query_pre_attn_scalar", 256);
  check(scalar > 0, ErrorKind::config, file, ": query_pre_attn_scalar must be above 0: got ",
        scalar);
  c.attention_scale = 1 / std::sqrt(scalar);
  c.window = keys.integer("sliding_window", 4096, 0);
  c.windowed_layers = windowed_layers_from(json, c.layers, file);
  c.logit_softcap = keys.number("final_logit_softcapping", logit_softcap, 0);
}

void write_gemma2_keys(const DecoderConfig& c, nlohmann::json& out) {
  const double scalar = c.attention_scale > 0 ? 1 / (c.attention_scale * c.attention_scale)
                                              : static_cast<double>(c.head_dim);
  out["query_pre_attn_scalar"] = scalar;
  if (const double whole = std::round(scalar); std::abs(scalar - whole) < 1e-9 * scalar) {
    out["query_pre_attn_scalar"] = static_cast<int64_t>(whole);
  }
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
  out["layer_types"] = nullptr;  // also without a window, which a missing key would bring back
  windowed_layers_to(c, out);
  out["final_logit_softcapping"] = nullptr;
  if (c.logit_softcap > 0) {
    out["final_logit_softcapping"] = c.logit_softcap;
  }
}

LayerParts gemma2_parts(const DecoderConfig& c) {
  const LayerParts norms = {{"input_layernorm", {"attention_norm"}},
                            {"post_attention_layernorm", {"attention_output_norm"}},
                            {"pre_feedforward_layernorm", {"mlp_norm"}},
                            {"post_feedforward_layernorm", {"mlp_output_norm"}}};
  return joined(norms, joined(attention_parts(c), mlp_parts(c)));
}

Architecture gemma2_architecture() {
  return {"gemma2", read_gemma2, write_gemma2, gemma2_names, llama_spelled, gemma2_start};
}

}  // namespace ingot
