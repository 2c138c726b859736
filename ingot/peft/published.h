#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ingot/peft/adapters.h"

namespace ingot::peft {

// Adapters in the layout of Hugging Face PEFT: a folder with adapter_config.json and
// adapter_model.safetensors. Its tensors are named base_model.model.MODULE.lora_A.weight,
// .lora_B.weight, .lora_magnitude_vector (DoRA) and .ia3_l, MODULE being the published model's
// name of a linear map. Bottleneck adapters, which PEFT has not, are written alike with peft_type
// "INGOT_BOTTLENECK".

// How the published model of ours names and joins linear maps.
struct PublishedMap {
  std::string module;             // "model.layers.0.self_attn.q_proj"
  std::vector<std::string> ours;  // paths of our maps: "layers.0.attention.wq"; joined along Out
  std::vector<int64_t> rows;      // Out of each
  bool transposed = false;        // stored as [In, Out]: PEFT's fan_in_fan_out
  int64_t alternating = 1;        // times that the parts take turns along Out
};
using PublishedMaps = std::vector<PublishedMap>;

// What a folder says of an adapter before a model is there.
struct AdapterFolder {
  std::filesystem::path path;
  PeftConfig config;      // kind, rank, alpha, rslora, dropout
  std::string base_name;  // base_model_name_or_path; empty: none
  std::string base_hash;  // of the base's weights, where Ingot wrote the adapter
};
// Throws Error(io) or Error(format) naming the file and the key: another kind of adapter, one with
// trained biases or whole modules.
AdapterFolder read_adapter_folder(const std::filesystem::path& folder);

// The adapter put onto a model. `base_hash`: of the model's weights; empty: not known. Throws
// Error(config) where the adapter was made for another base (its shapes or hash say so), and
// Error(format) naming a module that the model has not, or a tensor that is missing or unknown.
std::unique_ptr<Adapters> load_adapter(nn::Module& model, const PublishedMaps& maps,
                                       const AdapterFolder& folder, Adapters::Options options,
                                       const std::string& base_hash = "");

struct SaveAdapter {
  std::string base_name;  // written as base_model_name_or_path
  std::string base_hash;  // of its weights
};
// Writes the folder, which is made if absent; the config last. What PiSSA took out of the weights
// is written too, so that the adapter fits the base as it was. Throws Error(config) for a kind that
// cannot be written.
void save_adapter(const Adapters& adapters, const PublishedMaps& maps,
                  const std::filesystem::path& folder, const SaveAdapter& about);

// A hash of weights by name, type, shape and bytes: what tells bases apart.
std::string weights_hash(const TensorDict& weights);

// Which row of our maps, laid end to end, each row of a published joined map is.
std::vector<int64_t> joined_rows(const std::vector<int64_t>& rows, int64_t alternating);

}  // namespace ingot::peft
