#include "ingot/models/smollm3.h"

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig smollm3_start() {
  DecoderConfig c;
  c.architecture = "smollm3";
  c.tied = true;
  c.rope.base = 2e6;
  c.unrotated_every = 4;
  return c;
}

// `no_rope_layers` marks with 1 those that do rotate.
void read_rotation(const nlohmann::json& json, const std::string& file, DecoderConfig& c) {
  c.unrotated_every = ConfigKeys{json, file}.integer("no_rope_layer_interval", 4);
  const auto rotates = json_field_or<std::vector<int64_t>>(json, "no_rope_layers", {}, file);
  if (rotates.empty()) {
    return;
  }
  check(static_cast<int64_t>(rotates.size()) == c.layers, ErrorKind::config, file,
        ": no_rope_layers does not list every layer: it has ", rotates.size(),
        " entries, num_hidden_layers is ", c.layers);
  c.unrotated_layers.emplace();
  for (size_t layer = 0; layer < rotates.size(); ++layer) {
    if (rotates[layer] == 0) {
      c.unrotated_layers->push_back(static_cast<int64_t>(layer));
    }
  }
}

DecoderConfig read_smollm3(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = smollm3_start();
  read_usual(json, file,
             {.vocab = 128256,
              .width = 2048,
              .hidden = 11008,
              .layers = 36,
              .heads = 16,
              .kv_heads = 4,
              .context = 32768,
              .rope_base = 2e6,
              .padding_id = 128004,
              .tied = true},
             c);
  read_attention_bias(json, file, c);
  c.mlp_bias = ConfigKeys{json, file}.flag("mlp_bias", false);
  read_rotation(json, file, c);
  c.window = switched_window(json, file, 0);
  c.windowed_layers = windowed_layers_from(json, c.layers, file);
  if (c.window > 0 && !c.windowed_layers) {
    c.windowed_layers.emplace();
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      if (!is_rotated(c, layer)) {
        c.windowed_layers->push_back(layer);
      }
    }
  }
  return complete(c);
}

void write_smollm3(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "smollm3", "SmolLM3ForCausalLM", out);
  write_attention_bias(c, out);
  out["mlp_bias"] = *c.mlp_bias;
  write_switched_window(c, out);
  nlohmann::json rotates = nlohmann::json::array();
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    rotates.push_back(is_rotated(c, layer) ? 1 : 0);
  }
  out["no_rope_layers"] = std::move(rotates);
}

NameMap smollm3_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

Architecture smollm3_architecture() {
  return {"smollm3", read_smollm3, write_smollm3, smollm3_names, llama_spelled, smollm3_start};
}

}  // namespace ingot
