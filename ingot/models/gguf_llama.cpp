#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// llama: rotary pairs lie side by side in the rows of queries and keys, as in Meta's first files.
namespace ingot {
namespace {

DecoderConfig read(const GgufKeys& keys) {
  DecoderConfig c;
  c.architecture = "llama";
  read_usual(keys, c);
  c.attention_bias = keys.has_tensor("blk.0.attn_q.bias");
  c.output_bias = keys.has_tensor("blk.0.attn_output.bias");
  c.mlp_bias = keys.has_tensor("blk.0.ffn_up.bias");
  return complete(c);
}

void write(const DecoderConfig& c, GgufMetadata& out) { write_usual(c, "llama.", out); }

std::vector<GgufPair> pairs(const DecoderConfig& c) {
  return usual_pairs(c, {.interleaved = true});
}

}  // namespace

GgufArchitecture gguf_llama() { return {"llama", "llama", read, write, pairs}; }

}  // namespace ingot
