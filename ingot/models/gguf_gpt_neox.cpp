#include "ingot/models/architecture.h"
#include "ingot/models/gguf_families.h"
#include "ingot/models/gguf_usual.h"

// gptneox: queries, keys and values joined end to end, where the published files have them head by
// head.
namespace ingot {
namespace {

DecoderConfig read_gpt_neox_keys(const GgufKeys& keys) {
  DecoderConfig c = start_of("gpt_neox");
  c.vocab = keys.rows("token_embd.weight");
  c.width = keys.size("embedding_length");
  c.layers = keys.size("block_count");
  c.heads = keys.size("attention.head_count");
  c.hidden = keys.size("feed_forward_length");
  c.context = keys.size("context_length");
  check(c.layers <= keys.tensors() && c.heads > 0, ErrorKind::format, keys.file, ": gptneox with ",
        c.layers, " layers of ", c.heads, " heads in ", keys.tensors(), " tensors");
  c.norm_eps = keys.number_or("attention.layer_norm_epsilon", 1e-5);
  c.parallel = keys.flag_or("use_parallel_residual", true);
  c.rope = read_rotary(keys, c.width / c.heads, c.rope);
  c.tied = !keys.has_tensor("output.weight");
  return complete(c);
}

void write_gpt_neox_keys(const DecoderConfig& c, GgufMetadata& out) {
  out.set_u32("gptneox.context_length", c.context);
  out.set_u32("gptneox.embedding_length", c.width);
  out.set_u32("gptneox.block_count", c.layers);
  out.set_u32("gptneox.feed_forward_length", c.hidden);
  out.set_u32("gptneox.attention.head_count", c.heads);
  out.set_bool("gptneox.use_parallel_residual", c.parallel);
  out.set_f32("gptneox.attention.layer_norm_epsilon", *c.norm_eps);
  write_rotary(c, "gptneox.", out);
}

std::vector<GgufPair> gpt_neox_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out = {{"token_embd.weight", {"embedding.weight"}},
                               {"output_norm.weight", {"norm.weight"}},
                               {"output_norm.bias", {"norm.bias"}}};
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto both = [&](const char* theirs, std::initializer_list<const char*> ours) {
      for (const char* part : {".weight", ".bias"}) {
        GgufPair pair{concat("blk.", layer, ".", theirs, part), {}};
        for (const char* one : ours) {
          pair.ours.push_back(concat("layers.", layer, ".", one, part));
        }
        out.push_back(std::move(pair));
      }
    };
    both("attn_norm", {"attention_norm"});
    both("attn_qkv", {"attention.wq", "attention.wk", "attention.wv"});
    both("attn_output", {"attention.wo"});
    both("ffn_norm", {"mlp_norm"});
    both("ffn_up", {"mlp.up"});
    both("ffn_down", {"mlp.down"});
  }
  if (!*c.tied) {
    out.push_back({"output.weight", {"head.weight"}});
  }
  return out;
}

}  // namespace

GgufArchitecture gguf_gpt_neox() {
  return {"gptneox", "gpt_neox", read_gpt_neox_keys, write_gpt_neox_keys, gpt_neox_pairs};
}

}  // namespace ingot
