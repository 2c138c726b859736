#include "ingot/models/qwen2.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig qwen2_start() {
  DecoderConfig c;
  c.architecture = "qwen2";
  c.attention_bias = true;
  c.output_bias = false;
  return c;
}

DecoderConfig read_qwen2(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = qwen2_start();
  read_usual(json, file,
             {.vocab = 151936,
              .width = 4096,
              .hidden = 22016,
              .layers = 32,
              .heads = 32,
              .kv_heads = 32,
              .context = 32768},
             c);
  read_late_window(json, file, c);
  return complete(c);
}

void write_qwen2(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "qwen2", "Qwen2ForCausalLM", out);
  write_late_window(c, out);
}

NameMap qwen2_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

void read_late_window(const nlohmann::json& json, const std::string& file, DecoderConfig& c) {
  c.window = switched_window(json, file, 4096);
  c.windowed_layers = windowed_layers_from(json, c.layers, file);
  if (c.window > 0 && !c.windowed_layers) {
    c.windowed_layers.emplace();
    const int64_t first = ConfigKeys{json, file}.integer("max_window_layers", 28);
    for (int64_t layer = std::max<int64_t>(first, 0); layer < c.layers; ++layer) {
      c.windowed_layers->push_back(layer);
    }
  }
}

void write_late_window(const DecoderConfig& c, nlohmann::json& out) {
  write_switched_window(c, out);
  if (c.window == 0) {
    return;
  }
  // For programs that do not read layer_types.
  int64_t first = c.layers;
  while (first > 0 && is_windowed(c, first - 1)) {
    --first;
  }
  out["max_window_layers"] = first;
}

Architecture qwen2_architecture() {
  return {"qwen2", read_qwen2, write_qwen2, qwen2_names, llama_spelled, qwen2_start};
}

}  // namespace ingot
