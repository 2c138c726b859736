#include "ingot/models/gguf_usual.h"

#include <algorithm>
#include <cmath>

#include "ingot/models/decoder.h"

namespace ingot {
namespace {

// Radians without and with the stretch: their ratio, pair by pair.
std::vector<float> divisors_of(const nn::RotaryConfig& rope, int64_t rotated, int64_t context) {
  nn::RotaryConfig plain = rope;
  plain.scaling = "none";
  const auto before = nn::rotary_frequencies(plain, rotated, context, context);
  const auto after = nn::rotary_frequencies(rope, rotated, context, context);
  std::vector<float> out;
  for (size_t i = 0; i < before.size(); ++i) {
    out.push_back(static_cast<float>(before[i] / after[i]));
  }
  return out;
}

// The divisors say nothing of the four numbers they were made from; published models have these.
nn::RotaryConfig llama3_of(const GgufKeys& keys, nn::RotaryConfig rope, int64_t head_dim) {
  const std::vector<float> stored = keys.values("rope_freqs.weight");
  rope.scaling = "llama3";
  rope.original_context = 8192;
  for (const double factor : {8.0, 32.0, 16.0, 4.0, 2.0}) {
    rope.factor = factor;
    const std::vector<float> made =
        divisors_of(rope, nn::rotated_features(rope, head_dim), rope.original_context);
    if (std::equal(made.begin(), made.end(), stored.begin(), stored.end(),
                   [](float a, float b) { return std::abs(a - b) <= 1e-5F * std::abs(b); })) {
      return rope;
    }
  }
  throw Error(ErrorKind::config,
              concat(keys.file,
                     ": rope_freqs.weight: the frequencies' divisors are not those of "
                     "a llama3 stretch from 8192 tokens; Ingot computes no other"));
}

}  // namespace

nn::RotaryConfig read_rotary(const GgufKeys& keys, int64_t head_dim, nn::RotaryConfig rope) {
  rope.base = keys.number_or("rope.freq_base", 10000);
  const int64_t rotated = keys.size_or("rope.dimension_count", head_dim);
  rope.fraction =
      static_cast<double>(rotated) / static_cast<double>(std::max<int64_t>(head_dim, 1));
  const std::string kind = keys.text_or("rope.scaling.type", "none");
  check(kind == "none" || kind == "linear" || kind == "yarn", ErrorKind::config, keys.file, ": ",
        keys.prefix, "rope.scaling.type: '", kind, "' is not known; known are none, linear, yarn");
  rope.scaling = kind;
  if (kind != "none") {
    rope.factor = keys.number_or("rope.scaling.factor", 1);
    rope.original_context =
        kind == "yarn" ? keys.size_or("rope.scaling.original_context_length", 0) : 0;
  } else if (keys.has("rope.scale_linear")) {  // files from before the keys above
    rope.factor = keys.number_or("rope.scale_linear", 1);
    rope.scaling = rope.factor == 1 ? "none" : "linear";
  }
  return keys.has_tensor("rope_freqs.weight") ? llama3_of(keys, rope, head_dim) : rope;
}

void write_rotary(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  out.set_u32(prefix + "rope.dimension_count", nn::rotated_features(c.rope, c.head_dim));
  out.set_f32(prefix + "rope.freq_base", c.rope.base);
  if (c.rope.scaling == "linear" || c.rope.scaling == "yarn") {
    out.set(prefix + "rope.scaling.type", c.rope.scaling);
    out.set_f32(prefix + "rope.scaling.factor", c.rope.factor);
  }
  if (c.rope.scaling == "yarn" && c.rope.original_context > 0) {
    out.set_u32(prefix + "rope.scaling.original_context_length", c.rope.original_context);
  }
}

void add_rotary_constants(const DecoderConfig& c, std::vector<GgufPair>& pairs) {
  if (c.rope.scaling == "llama3") {
    GgufPair pair{"rope_freqs.weight", {}};
    pair.values = divisors_of(c.rope, nn::rotated_features(c.rope, c.head_dim), c.context);
    pairs.push_back(std::move(pair));
  }
}

void read_usual_keys(const GgufKeys& keys, DecoderConfig& c) {
  c.vocab = keys.rows("token_embd.weight");
  const int64_t stated = keys.size_or("vocab_size", c.vocab);
  check(stated == c.vocab, ErrorKind::format, keys.file, ": ", keys.prefix,
        "vocab_size differs from the rows of token_embd.weight: ", stated, " and ", c.vocab);
  c.width = keys.size("embedding_length");
  c.layers = keys.size("block_count");
  c.heads = keys.size("attention.head_count");
  c.kv_heads = keys.size_or("attention.head_count_kv", c.heads);
  c.head_dim = keys.size_or("attention.key_length", 0);
  c.hidden = keys.size("feed_forward_length");
  c.context = keys.size("context_length");
  check(c.layers <= keys.tensors(), ErrorKind::format, keys.file, ": ", keys.prefix,
        "block_count: more layers than tensors: ", c.layers, " layers, ", keys.tensors(),
        " tensors");
  check(c.heads > 0, ErrorKind::format, keys.file, ": ", keys.prefix,
        "attention.head_count: must be above 0");
  const int64_t values = keys.size_or("attention.value_length", c.head_dim);
  check(values == c.head_dim || c.head_dim == 0, ErrorKind::config, keys.file, ": ", keys.prefix,
        "attention.value_length differs from key_length: ", values, " and ", c.head_dim,
        ", which Ingot does not compute");
  c.norm_eps = keys.number_or("attention.layer_norm_rms_epsilon", 1e-6);
  c.rope = read_rotary(keys, c.head_dim > 0 ? c.head_dim : c.width / c.heads, c.rope);
  c.tied = !keys.has_tensor("output.weight");
  c.attention_bias = keys.has_tensor("blk.0.attn_q.bias");
  c.output_bias = keys.has_tensor("blk.0.attn_output.bias");
  c.mlp_bias = keys.has_tensor("blk.0.ffn_up.bias");
}

void write_usual_keys(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  out.set_u32(prefix + "vocab_size", c.vocab);
  out.set_u32(prefix + "context_length", c.context);
  out.set_u32(prefix + "embedding_length", c.width);
  out.set_u32(prefix + "block_count", c.layers);
  out.set_u32(prefix + "feed_forward_length", c.hidden);
  out.set_u32(prefix + "attention.head_count", c.heads);
  out.set_u32(prefix + "attention.head_count_kv", c.kv_heads);
  out.set_u32(prefix + "attention.key_length", c.head_dim);
  out.set_u32(prefix + "attention.value_length", c.head_dim);
  out.set_f32(prefix + "attention.layer_norm_rms_epsilon", *c.norm_eps);
  write_rotary(c, prefix, out);
}

std::vector<GgufPair> usual_pairs(const DecoderConfig& c, const UsualNames& options) {
  std::vector<GgufPair> pairs;
  pairs.push_back({"token_embd.weight", {"embedding.weight"}});
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string theirs = concat("blk.", layer, ".");
    const std::string ours = concat("layers.", layer, ".");
    const auto norm = [&](const char* their, const char* our) {
      pairs.push_back({theirs + their + ".weight", {ours + our + ".weight"}});
      pairs.back().added = options.norm_added;
    };
    const auto map = [&](const char* their, const char* our, bool bias, int64_t heads = 0) {
      for (const char* part : {".weight", ".bias"}) {
        if (part == std::string_view(".weight") || bias) {
          pairs.push_back({theirs + their + part, {ours + our + part}});
          pairs.back().interleaved_heads = options.interleaved ? heads : 0;
        }
      }
    };
    const bool before = c.norm_position == "pre" || c.norm_position == "sandwich";
    const bool after = c.norm_position == "output" || c.norm_position == "sandwich";
    if (before) {
      norm("attn_norm", "attention_norm");
      norm("ffn_norm", "mlp_norm");
    }
    if (after) {
      norm("post_attention_norm", "attention_output_norm");
      norm("post_ffw_norm", "mlp_output_norm");
    }
    map("attn_q", "attention.wq", *c.attention_bias, c.heads);
    map("attn_k", "attention.wk", *c.attention_bias, c.kv_heads);
    map("attn_v", "attention.wv", *c.attention_bias);
    map("attn_output", "attention.wo", *c.output_bias);
    if (c.qk_norm) {
      norm("attn_q_norm", "attention.q_norm");
      norm("attn_k_norm", "attention.k_norm");
    }
    if (options.mlp) {
      map("ffn_gate", "mlp.gate", *c.mlp_bias);
      map("ffn_up", "mlp.up", *c.mlp_bias);
      map("ffn_down", "mlp.down", *c.mlp_bias);
    }
  }
  pairs.push_back({"output_norm.weight", {"norm.weight"}});
  pairs.back().added = options.norm_added;
  if (!*c.tied) {
    pairs.push_back({"output.weight", {"head.weight"}});
  }
  add_rotary_constants(c, pairs);
  return pairs;
}

void add_experts(const DecoderConfig& c, std::vector<GgufPair>& pairs) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string theirs = concat("blk.", layer, ".");
    const std::string ours = concat("layers.", layer, ".moe.");
    pairs.push_back({theirs + "ffn_gate_inp.weight", {ours + "router.weight"}});
    for (const char* part : {"gate", "up", "down"}) {
      GgufPair pair{concat(theirs, "ffn_", part, "_exps.weight"), {}};
      pair.stacked = true;
      for (int64_t expert = 0; expert < c.moe.experts; ++expert) {
        pair.ours.push_back(concat(ours, "experts.", expert, ".", part, ".weight"));
      }
      pairs.push_back(std::move(pair));
    }
  }
}

}  // namespace ingot
