#include "ingot/models/llama.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig read_llama(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c;
  c.architecture = "llama";
  read_usual(
      json, file,
      {.vocab = 32000, .width = 4096, .hidden = 11008, .layers = 32, .heads = 32, .context = 2048},
      c);
  read_attention_bias(json, file, c);
  c.mlp_bias = ConfigKeys{json, file}.flag("mlp_bias", false);
  return complete(c);
}

void write_llama(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "llama", "LlamaForCausalLM", out);
  write_attention_bias(c, out);
  out["mlp_bias"] = *c.mlp_bias;
}

NameMap published_llama_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

Architecture llama_architecture() {
  return {"llama", read_llama, write_llama, published_llama_names, llama_spelled};
}

}  // namespace ingot
