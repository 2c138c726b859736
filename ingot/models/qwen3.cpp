#include "ingot/models/qwen3.h"

#include "ingot/base/json_library.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/qwen2.h"

namespace ingot {
namespace {

DecoderConfig qwen3_start() {
  DecoderConfig c;
  c.architecture = "qwen3";
  c.qk_norm = true;
  return c;
}

DecoderConfig read_qwen3(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = qwen3_start();
  read_usual(json, file,
             {.vocab = 151936,
              .width = 4096,
              .hidden = 22016,
              .layers = 32,
              .heads = 32,
              .kv_heads = 32,
              .head_dim = 128,
              .context = 32768},
             c);
  read_attention_bias(json, file, c);
  read_late_window(json, file, c);
  return complete(c);
}

void write_qwen3(const DecoderConfig& c, nlohmann::json& out) {
  write_usual(c, "qwen3", "Qwen3ForCausalLM", out);
  write_attention_bias(c, out);
  write_late_window(c, out);
}

NameMap qwen3_names(const DecoderConfig& c) { return llama_names(c, llama_parts(c)); }

}  // namespace

Architecture qwen3_architecture() {
  return {"qwen3", read_qwen3, write_qwen3, qwen3_names, llama_spelled, qwen3_start};
}

}  // namespace ingot
