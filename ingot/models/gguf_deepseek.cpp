#include <algorithm>

#include "ingot/models/architecture.h"
#include "ingot/models/deepseek_layout.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// deepseek2: DeepSeek V2 and V3, whose routers tell them apart. The maps up from the latent lie
// head by head in two tensors, that of the keys transposed, so that llama.cpp can move it to the
// queries; files from before 2025 have them joined as published. What a file cannot say because
// llama.cpp computes it in one way alone: groups of experts count as their best two, shared experts
// are there, and under yarn mscale equals mscale_all_dim.
namespace ingot {
namespace {

constexpr const char* prefix = "deepseek2.";
constexpr int64_t sigmoid = 2;  // of expert_gating_func; 1: softmax

// Where heads of keys and values are apart from those of the latent, and where they are the same.
struct HeadKeys {
  const char* key;
  const char* value;
};
constexpr HeadKeys split_heads = {"attention.key_length_mla", "attention.value_length_mla"};
constexpr HeadKeys joined_heads = {"attention.key_length", "attention.value_length"};

void read_latent(const GgufKeys& keys, const HeadKeys& heads, DecoderConfig& c) {
  c.latent.q_rank = keys.size_or("attention.q_lora_rank", 0);
  c.latent.kv_rank = keys.size("attention.kv_lora_rank");
  c.latent.rope_dim = keys.size("rope.dimension_count");
  c.latent.value_dim = keys.size(heads.value);
  c.head_dim = keys.size(heads.key);
  c.latent.nope_dim = c.head_dim - c.latent.rope_dim;
  check(c.latent.kv_rank > 0 && c.latent.rope_dim > 0 && c.latent.nope_dim > 0 &&
            c.latent.value_dim > 0,
        ErrorKind::format, keys.file, ": ", prefix,
        "attention: no size of latent attention is 0: ", "kv_lora_rank is ", c.latent.kv_rank,
        ", rope.dimension_count ", c.latent.rope_dim, ", ", heads.key, " ", c.head_dim, ", ",
        heads.value, " ", c.latent.value_dim);
  c.kv_heads = c.heads;
}

void read_yarn(const GgufKeys& keys, DecoderConfig& c) {
  c.rope = read_rotary(keys, c.latent.rope_dim, c.rope);
  c.rope.layout = "interleaved";
  if (c.rope.scaling ==
      "yarn") {  // without the key llama.cpp scales the scores in a way of its own
    c.rope.mscale = c.rope.mscale_all_dim = keys.number("rope.scaling.yarn_log_multiplier") / 0.1;
  }
}

void read_routing(const GgufKeys& keys, MoeConfig& m) {
  m.experts = read_expert_count(keys);
  m.top_k = keys.size("expert_used_count");
  m.hidden = keys.size("expert_feed_forward_length");
  m.shared = keys.size_or("expert_shared_count", 0);
  m.dense_first = keys.size_or("leading_dense_block_count", 0);
  m.scale = keys.number_or("expert_weights_scale", 1);
  m.renormalise = keys.flag_or("expert_weights_norm", false);
  m.groups = std::max<int64_t>(keys.size_or("expert_group_count", 1), 1);
  m.groups_kept = std::max<int64_t>(keys.size_or("expert_group_used_count", 1), 1);
  m.group_score = "best_two";
  m.balance = 0;
}

DecoderConfig read_as(const GgufKeys& keys, const char* family, const HeadKeys& heads) {
  DecoderConfig c = start_of(family);
  read_sizes(keys, c);
  read_latent(keys, heads, c);
  read_yarn(keys, c);
  read_routing(keys, c.moe);
  return complete(c);
}

void write_routing(const MoeConfig& m, GgufMetadata& out) {
  const auto size = [&](const char* key, int64_t value) {
    out.set_u32(std::string(prefix) + key, value);
  };
  size("expert_count", m.experts);
  size("expert_used_count", m.top_k);
  size("expert_feed_forward_length", m.hidden);
  size("expert_shared_count", m.shared);
  size("expert_group_count", m.groups);
  size("expert_group_used_count", m.groups_kept);
  size("expert_gating_func", *m.score == "sigmoid" ? sigmoid : 1);
  out.set_f32(std::string(prefix) + "expert_weights_scale", m.scale);
  out.set_bool(std::string(prefix) + "expert_weights_norm", *m.renormalise);
}

void write_shared(const DecoderConfig& c, GgufMetadata& out) {
  check(c.moe.shared > 0, ErrorKind::config,
        "gguf: llama.cpp has no deepseek2 without shared experts: moe.shared is 0");
  write_sizes(c, prefix, out);
  write_rotary(c, prefix, out);
  const auto size = [&](const char* key, int64_t value) {
    out.set_u32(std::string(prefix) + key, value);
  };
  size("rope.dimension_count", c.latent.rope_dim);
  if (c.rope.scaling == "yarn") {
    out.set_f32(std::string(prefix) + "rope.scaling.yarn_log_multiplier",
                0.1 * c.rope.mscale_all_dim);
  }
  size("leading_dense_block_count", dense_before_experts(c));
  size("attention.kv_lora_rank", c.latent.kv_rank);
  if (c.latent.q_rank > 0) {
    size("attention.q_lora_rank", c.latent.q_rank);
  }
  write_routing(c.moe, out);
}

// One key and value head of the latent's width, which all query heads read.
void write_split(const DecoderConfig& c, GgufMetadata& out) {
  write_shared(c, out);
  const auto size = [&](const char* key, int64_t value) {
    out.set_u32(std::string(prefix) + key, value);
  };
  size("attention.head_count_kv", 1);
  size("attention.key_length", c.latent.kv_rank + c.latent.rope_dim);
  size("attention.value_length", c.latent.kv_rank);
  size(split_heads.key, c.latent.nope_dim + c.latent.rope_dim);
  size(split_heads.value, c.latent.value_dim);
}

void write_joined(const DecoderConfig& c, GgufMetadata& out) {
  write_shared(c, out);
  out.set_u32(std::string(prefix) + "attention.head_count_kv", c.heads);
  out.set_u32(std::string(prefix) + joined_heads.key, c.latent.nope_dim + c.latent.rope_dim);
  out.set_u32(std::string(prefix) + joined_heads.value, c.latent.value_dim);
}

void add_latents(const DecoderConfig& c, bool split, std::vector<GgufPair>& pairs) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto add = [&](const char* theirs, const char* ours) -> GgufPair& {
      pairs.push_back({concat("blk.", layer, ".", theirs, ".weight"),
                       {concat("layers.", layer, ".attention.", ours, ".weight")}});
      return pairs.back();
    };
    if (c.latent.q_rank > 0) {
      add("attn_q_a", "wq_a");
      add("attn_q_a_norm", "q_norm");
      add("attn_q_b", "wq");
    } else {
      add("attn_q", "wq");
    }
    add("attn_kv_a_mqa", "wkv_a");
    add("attn_kv_a_norm", "kv_norm");
    add("attn_output", "wo");
    if (!split) {
      add("attn_kv_b", "wkv_b");
      continue;
    }
    const int64_t nope = c.latent.nope_dim;
    const int64_t value = c.latent.value_dim;
    add("attn_k_b", "wkv_b").part = {
        .heads = c.heads, .of = nope + value, .from = 0, .rows = nope, .transposed = true};
    add("attn_v_b", "wkv_b").part = {
        .heads = c.heads, .of = nope + value, .from = nope, .rows = value};
  }
}

template <bool split>
std::vector<GgufPair> deepseek_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out = usual_pairs(c, {.attention = false});
  add_latents(c, split, out);
  add_experts(c, out);
  return out;
}

template <bool split, bool third>
bool takes(const GgufMetadata& metadata) {
  const bool has_split = metadata.contains(std::string(prefix) + split_heads.key);
  const int64_t gating =
      metadata.integer_or(std::string(prefix) + "expert_gating_func", 1, "general.architecture");
  return has_split == split && (gating == sigmoid) == third;
}

template <bool split>
DecoderConfig read_v2(const GgufKeys& keys) {
  return read_as(keys, "deepseek_v2", split ? split_heads : joined_heads);
}

template <bool split>
DecoderConfig read_v3(const GgufKeys& keys) {
  return read_as(keys, "deepseek_v3", split ? split_heads : joined_heads);
}

}  // namespace

GgufArchitecture gguf_deepseek_v2() {
  return {"deepseek2", "deepseek_v2",        read_v2<true>,
          write_split, deepseek_pairs<true>, takes<true, false>};
}

GgufArchitecture gguf_deepseek_v3() {
  return {"deepseek2", "deepseek_v3",        read_v3<true>,
          write_split, deepseek_pairs<true>, takes<true, true>};
}

GgufArchitecture gguf_joined_deepseek_v2() {
  return {"deepseek2",  "deepseek_v2",         read_v2<false>,
          write_joined, deepseek_pairs<false>, takes<false, false>};
}

GgufArchitecture gguf_joined_deepseek_v3() {
  return {"deepseek2",  "deepseek_v3",         read_v3<false>,
          write_joined, deepseek_pairs<false>, takes<false, true>};
}

}  // namespace ingot
