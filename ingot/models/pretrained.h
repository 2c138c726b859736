#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "ingot/models/decoder.h"

namespace ingot {

// A model in the Hugging Face layout: a folder with config.json and model.safetensors (or shards
// with their index).
struct Pretrained {
  std::unique_ptr<Decoder> model;
  std::string config;  // config.json as it was read, to be written back with what Ingot ignores
};

// The same folder before a model is built from it: its tensors lie in the files, but for those
// that are packed (packed_weights.h).
struct Architecture;
struct PublishedFolder {
  const Architecture* architecture = nullptr;
  DecoderConfig config;  // complete; vocab counts the padding rows that the embedding has
  TensorDict tensors;    // under published names, as names() spells them; packed ones decoded
  std::string json;      // config.json, of the tensors as they are here

  // Ours for a model of that shape, as views. Throws Error(format) listing what does not fit.
  TensorDict weights(const DecoderConfig& shape) const;
};
// Throws Error(io), Error(format) or Error(config), each naming the file.
PublishedFolder read_published(const std::filesystem::path& folder);

// Refuses sizes that no file has and numbers outside their ranges, before anything is made from
// them; `tensors`: how many the files hold. Throws Error(config) naming `file` and the field.
void check_sizes(DecoderConfig& config, const std::string& file, int64_t tensors);

// Reads a folder. Weights are converted to `dtype`; without one they keep the type the file stores
// the embedding in. Throws Error(io), Error(format) or Error(config), each naming the file.
Pretrained load_pretrained(const std::filesystem::path& folder,
                           std::optional<DType> dtype = std::nullopt);

// config.json's word for an element type.
const char* published_dtype(DType dtype);

struct SaveOptions {
  std::string base_config = "{}";  // a config.json whose other keys are kept
  int64_t shard_bytes = 5'000'000'000;
  std::optional<int64_t> bos_token;  // written to config.json and generation_config.json
  std::optional<int64_t> eos_token;
};

// Writes config.json, generation_config.json and the weights into `folder`, which is made if
// absent. Weights go first and config.json last: a folder with a config.json is complete.
void save_pretrained(const Decoder& model, const std::filesystem::path& folder,
                     const SaveOptions& options = {});

}  // namespace ingot
