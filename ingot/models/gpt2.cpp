#include "ingot/models/gpt2.h"

#include "ingot/base/json_library.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig gpt2_start() {
  DecoderConfig c;
  c.architecture = "gpt2";
  c.norm = "layer";
  c.activation = "gelu_tanh";
  c.positions = "learned";
  c.tied = true;
  c.attention_bias = true;
  c.output_bias = true;
  c.mlp_bias = true;
  return c;
}

DecoderConfig read_gpt2(const nlohmann::json& json, const std::string& file) {
  const ConfigKeys keys{json, file};
  DecoderConfig c = gpt2_start();
  c.vocab = keys.size("vocab_size", 50257);
  c.width = keys.size("n_embd", 768);
  c.layers = keys.layers("n_layer", 12);
  c.heads = keys.size("n_head", 12);
  c.context = keys.size("n_positions", 1024);
  c.hidden = keys.size("n_inner", 4 * c.width);
  c.activation = activation_from(keys.text("activation_function", "gelu_new"), false);
  c.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  c.tied = keys.flag("tie_word_embeddings", true);
  c.attention_scale = keys.flag("scale_attn_weights", true) ? 0 : 1;
  c.scale_by_layer = keys.flag("scale_attn_by_inverse_layer_idx", false);
  refuse_if(keys.flag("add_cross_attention", false), "add_cross_attention", file);
  return complete(c);
}

void write_gpt2(const DecoderConfig& c, nlohmann::json& out) {
  out["architectures"] = {"GPT2LMHeadModel"};
  out["model_type"] = "gpt2";
  out["vocab_size"] = c.vocab;
  out["n_embd"] = c.width;
  out["n_layer"] = c.layers;
  out["n_head"] = c.heads;
  out["n_positions"] = c.context;
  out["n_ctx"] = c.context;
  out["n_inner"] = c.hidden;
  activation_to(*c.activation, "activation_function", out);
  out["layer_norm_epsilon"] = *c.norm_eps;
  out["tie_word_embeddings"] = *c.tied;
  out["scale_attn_weights"] = c.attention_scale == 0;
  out["scale_attn_by_inverse_layer_idx"] = c.scale_by_layer;
  for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) {
    if (!out.contains(key)) {
      out[key] = 0.0;
    }
  }
}

NameMap gpt2_names(const DecoderConfig& c) {
  NameMap map;
  auto& pairs = map.pairs;
  pairs.push_back({"transformer.wte.weight", {"embedding.weight"}});
  pairs.push_back({"transformer.wpe.weight", {"positions.weight"}});
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string theirs = concat("transformer.h.", layer, ".");
    const std::string ours = concat("layers.", layer, ".");
    const auto both = [&](const std::string& published, std::initializer_list<const char*> parts,
                          Stored stored) {
      NamePair weight{theirs + published + ".weight", {}, stored};
      NamePair bias{theirs + published + ".bias", {}, Stored::as_ours};
      for (const char* part : parts) {
        weight.ours.push_back(ours + part + ".weight");
        bias.ours.push_back(ours + part + ".bias");
      }
      pairs.push_back(std::move(weight));
      pairs.push_back(std::move(bias));
    };
    both("ln_1", {"attention_norm"}, Stored::as_ours);
    both("attn.c_attn", {"attention.wq", "attention.wk", "attention.wv"}, Stored::transposed);
    both("attn.c_proj", {"attention.wo"}, Stored::transposed);
    both("ln_2", {"mlp_norm"}, Stored::as_ours);
    both("mlp.c_fc", {"mlp.up"}, Stored::transposed);
    both("mlp.c_proj", {"mlp.down"}, Stored::transposed);
  }
  pairs.push_back({"transformer.ln_f.weight", {"norm.weight"}});
  pairs.push_back({"transformer.ln_f.bias", {"norm.bias"}});
  map.ignored = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};
  if (*c.tied) {
    map.tied.push_back({"lm_head.weight", {"embedding.weight"}});
  } else {
    pairs.push_back({"lm_head.weight", {"head.weight"}});
  }
  return map;
}

// The first files were saved from the model below the head, without "transformer.".
std::string gpt2_spelled(const std::string& published) {
  return published.starts_with("transformer.") || published.starts_with("lm_head.")
             ? published
             : "transformer." + published;
}

}  // namespace

Architecture gpt2_architecture() {
  return {"gpt2", read_gpt2, write_gpt2, gpt2_names, gpt2_spelled, gpt2_start};
}

}  // namespace ingot
