#include "ingot/models/phi3.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

// A config whose scaling of type "yarn" says what it means here.
nlohmann::json with_longrope(nlohmann::json json) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!json.contains(key) || !json[key].is_object()) {
      continue;
    }
    for (const char* kind : {"type", "rope_type"}) {
      if (json[key].contains(kind) && json[key][kind] == "yarn") {
        json[key][kind] = "longrope";
      }
    }
  }
  return json;
}

DecoderConfig read_phi3(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c;
  c.architecture = "phi3";
  read_usual(with_longrope(json), file,
             {.vocab = 32064,
              .width = 3072,
              .hidden = 8192,
              .layers = 32,
              .heads = 32,
              .context = 4096,
              .norm_eps = 1e-5,
              .padding_id = 32000},
             c);
  const ConfigKeys keys{json, file};
  c.window = keys.integer("sliding_window", 0);
  if (c.rope.scaling == "longrope" && c.rope.original_context == 0) {
    c.rope.original_context = 4096;
  }
  return complete(c);
}

void write_phi3(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "phi3", "Phi3ForCausalLM", out);
  out["sliding_window"] = nullptr;
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
}

NameMap phi3_names(const DecoderConfig& c) {
  const LayerParts parts = {
      {"input_layernorm", {"attention_norm"}},
      {"self_attn.qkv_proj", {"attention.wq", "attention.wk", "attention.wv"}},
      {"self_attn.o_proj", {"attention.wo"}},
      {"post_attention_layernorm", {"mlp_norm"}},
      {"mlp.gate_up_proj", {"mlp.gate", "mlp.up"}},
      {"mlp.down_proj", {"mlp.down"}}};
  return llama_names(c, parts);
}

}  // namespace

Architecture phi3_architecture() {
  return {"phi3", read_phi3, write_phi3, phi3_names, llama_spelled};
}

}  // namespace ingot
