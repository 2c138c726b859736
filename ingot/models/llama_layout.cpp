#include "ingot/models/llama_layout.h"

#include "ingot/base/json_library.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

int64_t usual_kv_heads(const UsualKeys& missing, int64_t heads) {
  return missing.kv_heads > 0 && heads % missing.kv_heads == 0 ? missing.kv_heads : 0;
}

}  // namespace

void read_usual(const nlohmann::json& json, const std::string& file, const UsualKeys& missing,
                DecoderConfig& c) {
  const ConfigKeys keys{json, file};
  c.vocab = keys.size("vocab_size", missing.vocab);
  c.width = keys.size("hidden_size", missing.width);
  c.hidden = keys.size("intermediate_size", missing.hidden);
  c.layers = keys.layers("num_hidden_layers", missing.layers);
  c.heads = keys.size("num_attention_heads", missing.heads);
  c.kv_heads = keys.integer("num_key_value_heads", usual_kv_heads(missing, c.heads), 0);
  c.head_dim = keys.integer("head_dim", missing.head_dim, 0);
  c.context = keys.size("max_position_embeddings", missing.context);
  c.activation = activation_from(keys.text(missing.activation_key, missing.activation), true);
  c.norm_eps = keys.number("rms_norm_eps", missing.norm_eps);
  c.rope = rotary_from(json, file, missing.rope_base);
  c.tied = keys.flag("tie_word_embeddings", missing.tied);
  c.padding_id =
      keys.integer("pad_token_id", missing.padding_id < c.vocab ? missing.padding_id : -1, -1);
}

void read_attention_bias(const nlohmann::json& json, const std::string& file, DecoderConfig& c) {
  c.attention_bias = ConfigKeys{json, file}.flag("attention_bias", false);
  c.output_bias = c.attention_bias;
}

void write_usual(const DecoderConfig& c, const char* model_type, const char* class_name,
                 nlohmann::json& out, const char* activation_key) {
  out["architectures"] = {class_name};
  out["model_type"] = model_type;
  out["vocab_size"] = c.vocab;
  out["hidden_size"] = c.width;
  out["intermediate_size"] = c.hidden;
  out["num_hidden_layers"] = c.layers;
  out["num_attention_heads"] = c.heads;
  out["num_key_value_heads"] = c.kv_heads;
  out["head_dim"] = c.head_dim;
  out["max_position_embeddings"] = c.context;
  activation_to(*c.activation, activation_key, out);
  out["rms_norm_eps"] = *c.norm_eps;
  rotary_to(c.rope, out);
  out["tie_word_embeddings"] = *c.tied;
  out["pad_token_id"] = nullptr;
  if (c.padding_id >= 0) {
    out["pad_token_id"] = c.padding_id;
  }
}

void write_attention_bias(const DecoderConfig& c, nlohmann::json& out) {
  check(*c.attention_bias == *c.output_bias, ErrorKind::config,
        "attention_bias: stands for all maps of attention");
  out["attention_bias"] = *c.attention_bias;
}

int64_t switched_window(const nlohmann::json& json, const std::string& file, int64_t missing) {
  const ConfigKeys keys{json, file};
  return keys.flag("use_sliding_window", false) ? keys.integer("sliding_window", missing, 0) : 0;
}

void write_switched_window(const DecoderConfig& c, nlohmann::json& out) {
  out["use_sliding_window"] = c.window > 0;
  if (c.window > 0) {
    out["sliding_window"] = c.window;
  }
  windowed_layers_to(c, out);
}

LayerParts attention_parts(const DecoderConfig& c) {
  LayerParts parts = {{"self_attn.q_proj", {"attention.wq"}, *c.attention_bias},
                      {"self_attn.k_proj", {"attention.wk"}, *c.attention_bias},
                      {"self_attn.v_proj", {"attention.wv"}, *c.attention_bias},
                      {"self_attn.o_proj", {"attention.wo"}, *c.output_bias}};
  if (c.qk_norm) {
    parts.push_back({"self_attn.q_norm", {"attention.q_norm"}});
    parts.push_back({"self_attn.k_norm", {"attention.k_norm"}});
  }
  return parts;
}

LayerParts mlp_parts(const DecoderConfig& c) {
  return {{"mlp.gate_proj", {"mlp.gate"}, *c.mlp_bias},
          {"mlp.up_proj", {"mlp.up"}, *c.mlp_bias},
          {"mlp.down_proj", {"mlp.down"}, *c.mlp_bias}};
}

LayerParts norm_parts() {
  return {{"input_layernorm", {"attention_norm"}}, {"post_attention_layernorm", {"mlp_norm"}}};
}

LayerParts llama_parts(const DecoderConfig& c) {
  return joined(norm_parts(), joined(attention_parts(c), mlp_parts(c)));
}

LayerParts joined(LayerParts first, const LayerParts& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void add_layer(const std::string& theirs, const std::string& ours, const LayerParts& parts,
               NameMap& map) {
  const auto add = [&](const LayerPart& part, const char* tensor) {
    NamePair pair{theirs + part.theirs + tensor, {}, Stored::as_ours, part.alternating};
    for (const std::string& one : part.ours) {
      pair.ours.push_back(ours + one + tensor);
    }
    map.pairs.push_back(std::move(pair));
  };
  for (const LayerPart& part : parts) {
    add(part, part.whole ? "" : ".weight");
    if (part.bias) {
      add(part, ".bias");
    }
  }
}

void add_layers(const DecoderConfig& c, const std::string& prefix, const PartsOfLayer& parts,
                NameMap& map) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    add_layer(concat(prefix, layer, "."), concat("layers.", layer, "."), parts(layer), map);
  }
}

NameMap llama_names(const DecoderConfig& c, const LayerParts& parts) {
  return llama_names(c, [&parts](int64_t) { return parts; });
}

NameMap llama_names(const DecoderConfig& c, const PartsOfLayer& parts) {
  NameMap map;
  map.pairs.push_back({"model.embed_tokens.weight", {"embedding.weight"}});
  add_layers(c, "model.layers.", parts, map);
  map.pairs.push_back({"model.norm.weight", {"norm.weight"}});
  map.ignored = {"**.rotary_emb.inv_freq"};
  if (*c.tied) {
    map.tied.push_back({"lm_head.weight", {"embedding.weight"}});
  } else {
    map.pairs.push_back({"lm_head.weight", {"head.weight"}});
  }
  return map;
}

std::string llama_spelled(const std::string& published) {
  for (const char* inside : {"embed_tokens.", "layers.", "norm."}) {
    if (published.starts_with(inside)) {
      return "model." + published;
    }
  }
  return published;
}

}  // namespace ingot
