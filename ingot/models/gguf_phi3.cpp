#include <algorithm>

#include "ingot/models/architecture.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// phi3: queries, keys and values joined, gate and up joined, and the divisors of longrope in two
// tensors. attention.sliding_window is there always, 0 for none, as llama.cpp's converter has it;
// llama.cpp reads it and computes none.
namespace ingot {
namespace {

constexpr const char* short_name = "rope_factors_short.weight";
constexpr const char* long_name = "rope_factors_long.weight";

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> narrowed(const std::vector<double>& values) {
  std::vector<float> out;
  std::transform(values.begin(), values.end(), std::back_inserter(out),
                 [](double value) { return static_cast<float>(value); });
  return out;
}

DecoderConfig read_phi3_keys(const GgufKeys& keys) {
  DecoderConfig c = start_of("phi3");
  c.architecture = "phi3";
  read_usual_keys(keys, c);
  c.window = keys.size_or("attention.sliding_window", 0);
  if (keys.has_tensor(long_name)) {
    c.rope.scaling = "longrope";
    c.rope.short_factors = widened(keys.values(short_name));
    c.rope.long_factors = widened(keys.values(long_name));
    c.rope.original_context = keys.size("rope.scaling.original_context_length");
    c.rope.attention_factor = keys.number_or("rope.scaling.attn_factor", 0);
  }
  return complete(c);
}

void write_phi3_keys(const DecoderConfig& c, GgufMetadata& out) {
  write_usual_keys(c, "phi3.", out);
  out.set_u32("phi3.attention.sliding_window", c.window);
  if (c.rope.scaling == "longrope") {
    out.set_u32("phi3.rope.scaling.original_context_length", c.rope.original_context);
    out.set_f32("phi3.rope.scaling.attn_factor", nn::rotary_amplitude(c.rope, c.context));
  }
}

std::vector<GgufPair> phi3_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out = {{"token_embd.weight", {"embedding.weight"}},
                               {"output_norm.weight", {"norm.weight"}}};
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto add = [&](const char* theirs, std::initializer_list<const char*> ours) {
      GgufPair pair{concat("blk.", layer, ".", theirs, ".weight"), {}};
      for (const char* one : ours) {
        pair.ours.push_back(concat("layers.", layer, ".", one, ".weight"));
      }
      out.push_back(std::move(pair));
    };
    add("attn_norm", {"attention_norm"});
    add("attn_qkv", {"attention.wq", "attention.wk", "attention.wv"});
    add("attn_output", {"attention.wo"});
    add("ffn_norm", {"mlp_norm"});
    add("ffn_up", {"mlp.gate", "mlp.up"});
    add("ffn_down", {"mlp.down"});
  }
  if (!*c.tied) {
    out.push_back({"output.weight", {"head.weight"}});
  }
  if (c.rope.scaling == "longrope") {
    out.push_back({long_name, {}});
    out.back().values = narrowed(c.rope.long_factors);
    out.push_back({short_name, {}});
    out.back().values = narrowed(c.rope.short_factors);
  }
  return out;
}

}  // namespace

GgufArchitecture gguf_phi3() {
  return {"phi3", "phi3", read_phi3_keys, write_phi3_keys, phi3_pairs};
}

}  // namespace ingot
