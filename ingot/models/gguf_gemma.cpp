#include "ingot/models/architecture.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// gemma, gemma2 and gemma3: files hold the gains of norms, and the published models their
// difference from 1. Which layers have a window, the rotation in these and the scale of scores are
// llama.cpp's, not the file's.
namespace ingot {
namespace {

DecoderConfig read_as_keys(const GgufKeys& keys, const char* family) {
  DecoderConfig c = start_of(family);
  read_usual_keys(keys, c);
  return c;
}

DecoderConfig read_gemma_keys(const GgufKeys& keys) {
  return complete(read_as_keys(keys, "gemma"));
}

DecoderConfig read_gemma2_keys(const GgufKeys& keys) {
  DecoderConfig c = read_as_keys(keys, "gemma2");
  c.window = keys.size_or("attention.sliding_window", 4096);
  c.attention_softcap = keys.number_or("attn_logit_softcapping", 50);
  c.logit_softcap = keys.number_or("final_logit_softcapping", 30);
  return complete(c);
}

DecoderConfig read_gemma3_keys(const GgufKeys& keys) {
  DecoderConfig c = read_as_keys(keys, "gemma3_text");
  c.window = keys.size_or("attention.sliding_window", 0);
  c.logit_softcap = keys.number_or("final_logit_softcapping", 0);
  return complete(c);
}

void write_gemma_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_usual_keys(c, "gemma.", out);
}

void write_gemma2_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_usual_keys(c, "gemma2.", out);
  out.set_u32("gemma2.attention.sliding_window", c.window);
  out.set_f32("gemma2.attn_logit_softcapping", c.attention_softcap);
  out.set_f32("gemma2.final_logit_softcapping", c.logit_softcap);
}

void write_gemma3_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_usual_keys(c, "gemma3.", out);
  out.set_u32("gemma3.attention.sliding_window", c.window);
  if (c.logit_softcap > 0) {
    out.set_f32("gemma3.final_logit_softcapping", c.logit_softcap);
  }
}

std::vector<GgufPair> gemma_pairs(const DecoderConfig& c) {
  return usual_pairs(c, {.norm_added = 1});
}

}  // namespace

GgufArchitecture gguf_gemma() {
  return {"gemma", "gemma", read_gemma_keys, write_gemma_keys, gemma_pairs};
}
GgufArchitecture gguf_gemma2() {
  return {"gemma2", "gemma2", read_gemma2_keys, write_gemma2_keys, gemma_pairs, nullptr, true};
}
GgufArchitecture gguf_gemma3() {
  return {"gemma3", "gemma3_text", read_gemma3_keys, write_gemma3_keys, gemma_pairs, nullptr, true};
}

}  // namespace ingot
