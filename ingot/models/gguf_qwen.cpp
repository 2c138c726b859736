#include "ingot/models/architecture.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// qwen2, qwen3, qwen3moe and olmo2: queries and keys lie as in the published files. Windows are
// written and read; llama.cpp passes over them.
namespace ingot {
namespace {

DecoderConfig read_as_keys(const GgufKeys& keys, const char* family) {
  DecoderConfig c = start_of(family);
  read_usual_keys(keys, c);
  read_window(keys, c);
  return c;
}

void write_as_keys(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  write_usual_keys(c, prefix, out);
  write_window(c, prefix, out);
}

DecoderConfig read_qwen2_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "qwen2"));
}
DecoderConfig read_qwen3_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "qwen3"));
}
DecoderConfig read_olmo2_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "olmo2"));
}

void write_qwen2_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "qwen2.", out);
}
void write_qwen3_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "qwen3.", out);
}
void write_olmo2_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_usual_keys(c, "olmo2.", out);
}

std::vector<GgufPair> qwen_pairs(const DecoderConfig& c) { return usual_pairs(c, {}); }

DecoderConfig read_qwen3_moe_keys(const GgufKeys& keys) {
  DecoderConfig c = read_as_keys(keys, "qwen3_moe");
  c.qk_norm = true;
  c.mlp_bias = false;
  c.moe.experts = read_expert_count(keys);
  c.moe.top_k = keys.size("expert_used_count");
  c.moe.hidden = keys.size("expert_feed_forward_length");
  c.moe.renormalise = true;
  return complete(c);
}

void write_qwen3_moe_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "qwen3moe.", out);
  out.set_u32("qwen3moe.expert_count", c.moe.experts);
  out.set_u32("qwen3moe.expert_used_count", c.moe.top_k);
  out.set_u32("qwen3moe.expert_feed_forward_length", c.moe.hidden);
}

std::vector<GgufPair> qwen3_moe_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out = usual_pairs(c, {});
  add_experts(c, out);
  return out;
}

}  // namespace

GgufArchitecture gguf_qwen2() {
  return {"qwen2", "qwen2", read_qwen2_keys, write_qwen2_keys, qwen_pairs};
}
GgufArchitecture gguf_qwen3() {
  return {"qwen3", "qwen3", read_qwen3_keys, write_qwen3_keys, qwen_pairs};
}
GgufArchitecture gguf_olmo2() {
  return {"olmo2", "olmo2", read_olmo2_keys, write_olmo2_keys, qwen_pairs};
}
GgufArchitecture gguf_qwen3_moe() {
  return {"qwen3moe", "qwen3_moe", read_qwen3_moe_keys, write_qwen3_moe_keys, qwen3_moe_pairs};
}

}  // namespace ingot
