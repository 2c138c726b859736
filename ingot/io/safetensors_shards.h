#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "ingot/io/safetensors.h"

namespace ingot {

// A model's tensors in one file or spread over several, as Hugging Face lays them out:
// model.safetensors, or model-00001-of-00003.safetensors … with model.safetensors.index.json, whose
// "weight_map" says which tensor is in which file.
class SafetensorsSet {
 public:
  // `path`: a .safetensors file, an index (….index.json), or a folder with one of the two. Throws
  // Error(format) where the index names a tensor that its file lacks, or a file outside the folder.
  explicit SafetensorsSet(const std::filesystem::path& path);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  const std::vector<std::string>& names() const { return names_; }  // of the tensors, sorted
  bool contains(std::string_view tensor) const;
  Tensor tensor(std::string_view tensor) const;  // see SafetensorsFile::tensor
  TensorDict tensors() const;                    // all of them, sorted by name

 private:
  void open_file(const std::filesystem::path& path);
  void open_index(const std::filesystem::path& path);

  std::vector<SafetensorsFile> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> file_of_;
};

// Writes model.safetensors below `folder`, or, where the tensors take more than `shard_bytes`, as
// few shards as a filling in name order gives and their index (last). A tensor larger than a shard
// has one of its own.
void write_safetensors_set(const std::filesystem::path& folder, const TensorDict& tensors,
                           int64_t shard_bytes, const SafetensorsMetadata& metadata = {});

}  // namespace ingot
