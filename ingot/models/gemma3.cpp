#include "ingot/models/gemma3.h"

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/gemma2.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig gemma3_start() {
  DecoderConfig c;
  c.architecture = "gemma3_text";
  c.norm_position = "sandwich";
  c.activation = "geglu_tanh";
  c.gain_difference = true;
  c.qk_norm = true;
  c.embedding_scale = 0;  // sqrt(width)
  c.tied = true;
  c.window = 4096;
  c.full_every = 6;
  c.rope.base = 1e6;
  c.rope.local_base = 10000;
  return c;
}

// Version 5's rope_parameters of windowed layers, where there are such.
const nlohmann::json* local_parameters(const nlohmann::json& json) {
  const auto all = json.find("rope_parameters");
  if (all == json.end() || !all->is_object()) {
    return nullptr;
  }
  const auto local = all->find("sliding_attention");
  return local != all->end() && local->is_object() ? &*local : nullptr;
}

double local_base(const nlohmann::json& json, const std::string& file) {
  const double older = ConfigKeys{json, file}.number("rope_local_base_freq", 10000);
  const nlohmann::json* newer = local_parameters(json);
  if (newer == nullptr) {
    return older;
  }
  const ConfigKeys keys{*newer, file};
  refuse_if(keys.text("rope_type", "default") != "default",
            "rope_parameters.sliding_attention.rope_type", file);
  return keys.number("rope_theta", older);
}

DecoderConfig read_gemma3(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = gemma3_start();
  read_usual(json, file,
             {.vocab = 262208,
              .width = 2304,
              .hidden = 9216,
              .layers = 26,
              .heads = 8,
              .kv_heads = 4,
              .head_dim = 256,
              .context = 131072,
              .rope_base = 1e6,
              .padding_id = 0,
              .tied = true,
              .activation_key = "hidden_activation",
              .activation = "gelu_pytorch_tanh"},
             c);
  const ConfigKeys keys{json, file};
  read_attention_bias(json, file, c);
  read_gemma2_keys(json, file, 0, c);
  c.full_every = keys.integer("sliding_window_pattern", 6);
  c.rope.local_base = local_base(json, file);
  refuse_if(keys.flag("use_bidirectional_attention", false), "use_bidirectional_attention", file);
  return complete(c);
}

void write_gemma3(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "gemma3_text", "Gemma3ForCausalLM", out, "hidden_activation");
  write_attention_bias(c, out);
  write_gemma2_keys(c, out);
  const double local = c.rope.local_base > 0 ? c.rope.local_base : c.rope.base;
  if (local_parameters(out) != nullptr) {
    out["rope_parameters"]["sliding_attention"]["rope_theta"] = local;
  } else {
    out["rope_local_base_freq"] = local;
  }
}

NameMap gemma3_names(const DecoderConfig& c) { return llama_names(c, gemma2_parts(c)); }

}  // namespace

Architecture gemma3_architecture() {
  return {"gemma3_text", read_gemma3, write_gemma3, gemma3_names, llama_spelled, gemma3_start};
}

}  // namespace ingot
