#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ingot/models/decoder_config.h"
#include "ingot/models/published_names.h"

namespace ingot {

// What most families share with Llama: the keys of config.json and the names of tensors.

// What a missing key means to a family.
struct UsualKeys {
  int64_t vocab, width, hidden, layers, heads;
  int64_t kv_heads = 0;  // 0: as many as heads; also where this many do not divide them
  int64_t head_dim = 0;  // 0: width / heads, which null means everywhere
  int64_t context;
  double norm_eps = 1e-6;
  double rope_base = 10000;
  int64_t padding_id = -1;
  bool tied = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
};

// Sizes, norm_eps, activation, rotation, tied head and padding id.
void read_usual(const nlohmann::json& json, const std::string& file, const UsualKeys& missing,
                DecoderConfig& c);
// `attention_bias`: of queries, keys, values and the output map alike.
void read_attention_bias(const nlohmann::json& json, const std::string& file, DecoderConfig& c);
// Sets the same keys, "architectures" and "model_type".
void write_usual(const DecoderConfig& c, const char* model_type, const char* class_name,
                 nlohmann::json& out, const char* activation_key = "hidden_act");
void write_attention_bias(const DecoderConfig& c, nlohmann::json& out);

// `sliding_window` where `use_sliding_window` switches it on, otherwise 0.
int64_t switched_window(const nlohmann::json& json, const std::string& file, int64_t missing);
void write_switched_window(const DecoderConfig& c, nlohmann::json& out);

// A map or norm of a layer: their name for the parts of ours that it holds.
struct LayerPart {
  std::string theirs;
  std::vector<std::string> ours;
  bool bias = false;        // besides the weight
  int64_t alternating = 1;  // see NamePair
  bool whole = false;       // the names are those of a tensor: no .weight follows
};
using LayerParts = std::vector<LayerPart>;
using PartsOfLayer = std::function<LayerParts(int64_t layer)>;

LayerParts attention_parts(const DecoderConfig& c);  // self_attn.*
LayerParts mlp_parts(const DecoderConfig& c);        // mlp.*
LayerParts norm_parts();                             // the norms before attention and mlp
LayerParts llama_parts(const DecoderConfig& c);      // all of these
LayerParts joined(LayerParts first, const LayerParts& second);

// `theirs`.….weight and .bias of one layer, and their places below `ours`.
void add_layer(const std::string& theirs, const std::string& ours, const LayerParts& parts,
               NameMap& map);
// `prefix`N.`theirs`.weight and .bias of every layer N.
void add_layers(const DecoderConfig& c, const std::string& prefix, const PartsOfLayer& parts,
                NameMap& map);
// model.embed_tokens, model.layers.N, model.norm and lm_head.
NameMap llama_names(const DecoderConfig& c, const LayerParts& parts);
NameMap llama_names(const DecoderConfig& c, const PartsOfLayer& parts);
// Adds "model." to the names of a file saved from the model below the head.
std::string llama_spelled(const std::string& published);

}  // namespace ingot
