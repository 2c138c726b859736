#include "ingot/models/architecture.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// llama, and what goes by its name or its layout: rotary pairs lie side by side in the rows of
// queries and keys, as in Meta's first files. A window is written and read; llama.cpp passes over
// it.
namespace ingot {
namespace {

DecoderConfig read_as_keys(const GgufKeys& keys, const char* family) {
  DecoderConfig c = start_of(family);
  read_usual_keys(keys, c);
  read_window(keys, c);
  return c;
}

DecoderConfig read_llama_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "llama"));
}

DecoderConfig read_mistral_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "mistral"));
}

DecoderConfig read_smollm3_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "smollm3"));
}

void write_as_keys(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  write_usual_keys(c, prefix, out);
  write_window(c, prefix, out);
}

void write_llama_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "llama.", out);
}
void write_smollm3_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "smollm3.", out);
}

std::vector<GgufPair> llama_pairs(const DecoderConfig& c) {
  return usual_pairs(c, {.interleaved = true});
}

bool has_experts(const GgufMetadata& metadata) { return metadata.contains("llama.expert_count"); }

bool has_a_window(const GgufMetadata& metadata) {
  return !has_experts(metadata) && metadata.contains("llama.attention.sliding_window");
}

bool is_plain(const GgufMetadata& metadata) {
  return !has_experts(metadata) && !has_a_window(metadata);
}

DecoderConfig read_mixtral_keys(const GgufKeys& keys) {
  DecoderConfig c = read_as_keys(keys, "mixtral");
  c.mlp_bias = false;
  c.moe.experts = read_expert_count(keys);
  c.moe.top_k = keys.size("expert_used_count");
  c.moe.renormalise = true;
  return complete(c);
}

void write_mixtral_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_as_keys(c, "llama.", out);
  out.set_u32("llama.expert_count", c.moe.experts);
  out.set_u32("llama.expert_used_count", c.moe.top_k);
}

std::vector<GgufPair> mixtral_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out = usual_pairs(c, {.interleaved = true});
  add_experts(c, out);
  return out;
}

}  // namespace

GgufArchitecture gguf_llama() {
  return {"llama", "llama", read_llama_keys, write_llama_keys, llama_pairs, is_plain};
}

GgufArchitecture gguf_mistral() {
  return {"llama", "mistral", read_mistral_keys, write_llama_keys, llama_pairs, has_a_window};
}

GgufArchitecture gguf_mixtral() {
  return {"llama", "mixtral", read_mixtral_keys, write_mixtral_keys, mixtral_pairs, has_experts};
}

GgufArchitecture gguf_smollm3() {
  return {"smollm3", "smollm3", read_smollm3_keys, write_smollm3_keys, llama_pairs};
}

}  // namespace ingot
