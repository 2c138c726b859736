#include "ingot/models/gpt2.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  const auto integer = [&](const char* key, int64_t fallback) {
    return json_field_or<int64_t>(json, key, fallback, file);
  };
  const auto flag = [&](const char* key, bool fallback) {
    return json_field_or<bool>(json, key, fallback, file);
  };
  DecoderConfig c;
  c.architecture = "gpt2";
  c.vocab = integer("vocab_size", 50257);
  c.width = integer("n_embd", 768);
  c.layers = integer("n_layer", 12);
  c.heads = integer("n_head", 12);
  c.context = integer("n_positions", 1024);
  c.hidden = integer("n_inner", 4 * c.width);
  c.activation = activation_from(
      json_field_or<std::string>(json, "activation_function", "gelu_new", file), false);
  c.norm_eps = json_field_or<double>(json, "layer_norm_epsilon", 1e-5, file);
  c.tied = flag("tie_word_embeddings", true);
  c.attention_scale = flag("scale_attn_weights", true) ? 0 : 1;
  c.scale_by_layer = flag("scale_attn_by_inverse_layer_idx", false);
  refuse_if(flag("add_cross_attention", false), "add_cross_attention", file);
  return complete(c);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  out["architectures"] = {"GPT2LMHeadModel"};
  out["model_type"] = "gpt2";
  out["vocab_size"] = c.vocab;
  out["n_embd"] = c.width;
  out["n_layer"] = c.layers;
  out["n_head"] = c.heads;
  out["n_positions"] = c.context;
  out["n_ctx"] = c.context;
  out["n_inner"] = c.hidden;
  out["activation_function"] = *activation_to(*c.activation);
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

std::string misfit(const DecoderConfig& c) {
  if (c.moe.experts > 0 || c.latent.kv_rank > 0) {
    return "gpt2 has neither experts nor latent attention";
  }
  const bool scaled = c.attention_scale == 0 || c.attention_scale == 1;
  if (*c.norm != "layer" || c.norm_position != "pre" || *c.positions != "learned") {
    return "gpt2 has layer norms before each half and learned positions";
  }
  if (!*c.attention_bias || !*c.output_bias || !*c.mlp_bias) {
    return "gpt2 has biases everywhere";
  }
  if (nn::is_gated(nn::activation_named(*c.activation)) || !activation_to(*c.activation)) {
    return "gpt2 has no activation " + *c.activation;
  }
  if (c.kv_heads != c.heads || c.head_dim * c.heads != c.width || !scaled) {
    return "gpt2 has full heads that fill the width";
  }
  if (c.qk_norm || !c.residual || c.window != 0 || c.attention_softcap != 0 ||
      c.logit_softcap != 0 || c.embedding_scale != 1 || c.padding_id != -1) {
    return "gpt2 has none of qk_norm, window, softcaps, embedding_scale, padding_id";
  }
  return "";
}

NameMap names(const DecoderConfig& c) {
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
    map.ignored.emplace_back("lm_head.weight");
  } else {
    pairs.push_back({"lm_head.weight", {"head.weight"}});
  }
  return map;
}

// The first files were saved from the model below the head, without "transformer.".
std::string spelled(const std::string& published) {
  return published.starts_with("transformer.") || published.starts_with("lm_head.")
             ? published
             : "transformer." + published;
}

}  // namespace

Architecture gpt2_architecture() { return {"gpt2", read, write, misfit, names, spelled}; }

}  // namespace ingot
