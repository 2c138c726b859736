#include "ingot/models/olmo2.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"

namespace ingot {
namespace {

DecoderConfig olmo2_start() {
  DecoderConfig c;
  c.architecture = "olmo2";
  c.norm_position = "output";
  c.qk_norm = true;
  c.qk_norm_span = "projection";
  return c;
}

DecoderConfig read_olmo2(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = olmo2_start();
  read_usual(json, file,
             {.vocab = 50304,
              .width = 4096,
              .hidden = 11008,
              .layers = 32,
              .heads = 32,
              .context = 2048,
              .norm_eps = 1e-5,
              .padding_id = 1},
             c);
  read_attention_bias(json, file, c);
  return complete(c);
}

void write_olmo2(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "olmo2", "Olmo2ForCausalLM", out);
  write_attention_bias(c, out);
}

NameMap olmo2_names(const DecoderConfig& c) {
  const LayerParts norms = {{"post_attention_layernorm", {"attention_output_norm"}},
                            {"post_feedforward_layernorm", {"mlp_output_norm"}}};
  return llama_names(c, joined(norms, joined(attention_parts(c), mlp_parts(c))));
}

}  // namespace

Architecture olmo2_architecture() {
  return {"olmo2", read_olmo2, write_olmo2, olmo2_names, llama_spelled, olmo2_start};
}

}  // namespace ingot
