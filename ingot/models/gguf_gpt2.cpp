#include "ingot/models/gguf_families.h"

// gpt2: queries, keys and values joined; maps stored as [Out, In], unlike in the published files.
namespace ingot {
namespace {

DecoderConfig read_gpt2_keys(const GgufKeys& keys) {
  DecoderConfig c;
  c.architecture = "gpt2";
  c.vocab = keys.rows("token_embd.weight");
  c.width = keys.size("embedding_length");
  c.layers = keys.size("block_count");
  c.heads = keys.size("attention.head_count");
  c.hidden = keys.size("feed_forward_length");
  c.context = keys.size("context_length");
  check(c.layers <= keys.tensors() && c.heads > 0, ErrorKind::format, keys.file, ": gpt2 with ",
        c.layers, " layers of ", c.heads, " heads in ", keys.tensors(), " tensors");
  c.norm_eps = keys.number_or("attention.layer_norm_epsilon", 1e-5);
  c.tied = !keys.has_tensor("output.weight");
  return complete(c);
}

void write_gpt2_keys(const DecoderConfig& c, GgufMetadata& out) {
  out.set_u32("gpt2.context_length", c.context);
  out.set_u32("gpt2.embedding_length", c.width);
  out.set_u32("gpt2.feed_forward_length", c.hidden);
  out.set_u32("gpt2.block_count", c.layers);
  out.set_u32("gpt2.attention.head_count", c.heads);
  out.set_f32("gpt2.attention.layer_norm_epsilon", *c.norm_eps);
}

std::vector<GgufPair> gpt2_pairs(const DecoderConfig& c) {
  std::vector<GgufPair> out;
  out.push_back({"token_embd.weight", {"embedding.weight"}});
  out.push_back({"position_embd.weight", {"positions.weight"}});
  out.push_back({"output_norm.weight", {"norm.weight"}});
  out.push_back({"output_norm.bias", {"norm.bias"}});
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto both = [&](const std::string& theirs, std::initializer_list<const char*> ours) {
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

GgufArchitecture gguf_gpt2() {
  return {"gpt2", "gpt2", read_gpt2_keys, write_gpt2_keys, gpt2_pairs};
}

}  // namespace ingot
