#include "ingot/models/mistral.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig mistral_start() {
  DecoderConfig c;
  c.architecture = "mistral";
  c.window = 4096;
  return c;
}

DecoderConfig read_mistral(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = mistral_start();
  read_usual(json, file,
             {.vocab = 32000,
              .width = 4096,
              .hidden = 14336,
              .layers = 32,
              .heads = 32,
              .kv_heads = 8,
              .context = 131072},
             c);
  c.window = ConfigKeys{json, file}.integer("sliding_window", 4096, 0);
  return complete(c);
}

void write_mistral(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "mistral", "MistralForCausalLM", out);
  out["sliding_window"] = nullptr;
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
}

NameMap mistral_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

Architecture mistral_architecture() {
  return {"mistral", read_mistral, write_mistral, mistral_names, llama_spelled, mistral_start};
}

}  // namespace ingot
