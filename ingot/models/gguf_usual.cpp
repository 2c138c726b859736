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

// What llama.cpp multiplies attn_factor by under yarn.
double yarn_amplitude(double factor) { return 0.1 * std::log(factor) + 1; }

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
  }
  if (kind == "yarn") {
    rope.original_context = keys.size_or("rope.scaling.original_context_length", 0);
    rope.beta_fast = keys.number_or("rope.scaling.yarn_beta_fast", 32);
    rope.beta_slow = keys.number_or("rope.scaling.yarn_beta_slow", 1);
    rope.attention_factor =
        keys.number_or("rope.scaling.attn_factor", 0) * yarn_amplitude(rope.factor);
  } else if (kind == "none" && keys.has("rope.scale_linear")) {  // files from before the keys above
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
  if (c.rope.scaling != "yarn") {
    return;
  }
  if (c.rope.original_context > 0) {
    out.set_u32(prefix + "rope.scaling.original_context_length", c.rope.original_context);
  }
  const nn::RotaryConfig usual;
  if (c.rope.beta_fast != usual.beta_fast || c.rope.beta_slow != usual.beta_slow) {
    out.set_f32(prefix + "rope.scaling.yarn_beta_fast", c.rope.beta_fast);
    out.set_f32(prefix + "rope.scaling.yarn_beta_slow", c.rope.beta_slow);
  }
  if (c.rope.attention_factor > 0) {
    out.set_f32(prefix + "rope.scaling.attn_factor",
                c.rope.attention_factor / yarn_amplitude(c.rope.factor));
  }
}

void add_rotary_constants(const DecoderConfig& c, std::vector<GgufPair>& pairs) {
  if (c.rope.scaling == "llama3") {
    GgufPair pair{"rope_freqs.weight", {}};
    pair.values = divisors_of(c.rope, nn::rotated_features(c.rope, c.head_dim), c.context);
    pairs.push_back(std::move(pair));
  }
}

void read_sizes(const GgufKeys& keys, DecoderConfig& c) {
  c.vocab = keys.rows("token_embd.weight");
  const int64_t stated = keys.size_or("vocab_size", c.vocab);
  check(stated == c.vocab, ErrorKind::format, keys.file, ": ", keys.prefix,
        "vocab_size differs from the rows of token_embd.weight: ", stated, " and ", c.vocab);
  c.width = keys.size("embedding_length");
  c.layers = keys.size("block_count");
  c.heads = keys.size("attention.head_count");
  c.hidden = keys.size("feed_forward_length");
  c.context = keys.size("context_length");
  check(c.layers <= keys.tensors(), ErrorKind::format, keys.file, ": ", keys.prefix,
        "block_count: more layers than tensors: ", c.layers, " layers, ", keys.tensors(),
        " tensors");
  check(c.heads > 0, ErrorKind::format, keys.file, ": ", keys.prefix,
        "attention.head_count: must be above 0");
  c.norm_eps = keys.number_or("attention.layer_norm_rms_epsilon", 1e-6);
  c.tied = !keys.has_tensor("output.weight");
}

void read_usual_keys(const GgufKeys& keys, DecoderConfig& c) {
  read_sizes(keys, c);
  c.kv_heads = keys.size_or("attention.head_count_kv", c.heads);
  c.head_dim = keys.size_or("attention.key_length", 0);
  const int64_t values = keys.size_or("attention.value_length", c.head_dim);
  check(values == c.head_dim || c.head_dim == 0, ErrorKind::config, keys.file, ": ", keys.prefix,
        "attention.value_length differs from key_length: ", values, " and ", c.head_dim,
        ", which Ingot does not compute");
  c.rope = read_rotary(keys, c.head_dim > 0 ? c.head_dim : c.width / c.heads, c.rope);
  c.attention_bias = keys.has_tensor("blk.0.attn_q.bias");
  c.output_bias = keys.has_tensor("blk.0.attn_output.bias");
  c.mlp_bias = keys.has_tensor("blk.0.ffn_up.bias");
}

void read_window(const GgufKeys& keys, DecoderConfig& c) {
  c.window = keys.size_or("attention.sliding_window", 0);
  if (c.window > 0 && keys.has("attention.sliding_window_pattern")) {
    c.windowed_layers = keys.flagged("attention.sliding_window_pattern");
  }
}

void write_window(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  if (c.window == 0) {
    return;
  }
  out.set_u32(prefix + "attention.sliding_window", c.window);
  std::vector<bool> windowed;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    windowed.push_back(is_windowed(c, layer));
  }
  if (std::ranges::count(windowed, false) > 0) {
    out.set(prefix + "attention.sliding_window_pattern", GgufValue{GgufArray{std::move(windowed)}});
  }
}

void write_sizes(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  out.set_u32(prefix + "vocab_size", c.vocab);
  out.set_u32(prefix + "context_length", c.context);
  out.set_u32(prefix + "embedding_length", c.width);
  out.set_u32(prefix + "block_count", c.layers);
  out.set_u32(prefix + "feed_forward_length", c.hidden);
  out.set_u32(prefix + "attention.head_count", c.heads);
  out.set_f32(prefix + "attention.layer_norm_rms_epsilon", *c.norm_eps);
}

void write_usual_keys(const DecoderConfig& c, const std::string& prefix, GgufMetadata& out) {
  write_sizes(c, prefix, out);
  out.set_u32(prefix + "attention.head_count_kv", c.kv_heads);
  out.set_u32(prefix + "attention.key_length", c.head_dim);
  out.set_u32(prefix + "attention.value_length", c.head_dim);
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
    if (options.attention) {
      map("attn_q", "attention.wq", *c.attention_bias, c.heads);
      map("attn_k", "attention.wk", *c.attention_bias, c.kv_heads);
      map("attn_v", "attention.wv", *c.attention_bias);
      map("attn_output", "attention.wo", *c.output_bias);
    }
    if (c.qk_norm) {
      norm("attn_q_norm", "attention.q_norm");
      norm("attn_k_norm", "attention.k_norm");
    }
    if (!has_experts(c.moe, layer)) {
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

int64_t read_expert_count(const GgufKeys& keys) {
  const int64_t experts = keys.size("expert_count");
  const auto routes_to_all = [&](const GgufTensor& one) {
    return one.name.ends_with(".ffn_gate_inp.weight") && one.shape.rank() == 2 &&
           one.shape[0] == experts;
  };
  check(std::ranges::any_of(keys.header.tensors, routes_to_all), ErrorKind::format, keys.file, ": ",
        keys.prefix, "expert_count: no router has as many rows: ", experts,
        " experts; the tensors ffn_gate_inp.weight are [expert_count, embedding_length]");
  return experts;
}

void add_experts(const DecoderConfig& c, std::vector<GgufPair>& pairs) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (!has_experts(c.moe, layer)) {
      continue;
    }
    const std::string theirs = concat("blk.", layer, ".");
    const std::string ours = concat("layers.", layer, ".moe.");
    pairs.push_back({theirs + "ffn_gate_inp.weight", {ours + "router.weight"}});
    if (*c.moe.correction) {
      pairs.push_back({theirs + "exp_probs_b.bias", {ours + "router.correction"}});
    }
    for (const char* part : {"gate", "up", "down"}) {
      GgufPair pair{concat(theirs, "ffn_", part, "_exps.weight"), {}};
      pair.stacked = true;
      for (int64_t expert = 0; expert < c.moe.experts; ++expert) {
        pair.ours.push_back(concat(ours, "experts.", expert, ".", part, ".weight"));
      }
      pairs.push_back(std::move(pair));
      if (c.moe.shared > 0) {
        pairs.push_back({concat(theirs, "ffn_", part, "_shexp.weight"),
                         {concat(ours, "shared.", part, ".weight")}});
      }
    }
  }
}

}  // namespace ingot
