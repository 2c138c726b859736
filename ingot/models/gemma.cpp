#include "ingot/models/gemma.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"

namespace ingot {
namespace {

DecoderConfig gemma_start() {
  DecoderConfig c;
  c.architecture = "gemma";
  c.activation = "geglu_tanh";
  c.gain_difference = true;
  c.embedding_scale = 0;  // sqrt(width)
  c.tied = true;
  return c;
}

DecoderConfig read_gemma(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = gemma_start();
  read_usual(json, file,
             {.vocab = 256000,
              .width = 3072,
              .hidden = 24576,
              .layers = 28,
              .heads = 16,
              .kv_heads = 16,
              .head_dim = 256,
              .context = 8192,
              .padding_id = 0,
              .tied = true,
              .activation = "gelu_pytorch_tanh"},
             c);
  read_attention_bias(json, file, c);
  return complete(c);
}

void write_gemma(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "gemma", "GemmaForCausalLM", out);
  write_attention_bias(c, out);
}

NameMap gemma_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

Architecture gemma_architecture() {
  return {"gemma", read_gemma, write_gemma, gemma_names, llama_spelled, gemma_start};
}

}  // namespace ingot
