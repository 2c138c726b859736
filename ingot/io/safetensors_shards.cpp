#include "ingot/io/safetensors_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::vector<TensorDict> filled_shards(const TensorDict& tensors, int64_t shard_bytes) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::vector<TensorDict> shards(1);
  for (const std::string& name : names) {
    const Tensor& tensor = tensors.at(name);
    if (!shards.back().empty() && shards.back().bytes() + tensor.bytes() > shard_bytes) {
      shards.emplace_back();
    }
    shards.back().add(name, tensor);
  }
  return shards;
}

}  // namespace

SafetensorsSet::SafetensorsSet(const fs::path& path) {
  if (is_folder(path)) {
    if (file_exists(path / index_name)) {
      open_index(path / index_name);
    } else {
      check(file_exists(path / single_name), ErrorKind::io, path.string(),
            ": no tensors here: the folder has neither ", single_name, " nor ", index_name);
      open_file(path / single_name);
    }
  } else if (path.string().ends_with(".index.json")) {
    open_index(path);
  } else {
    open_file(path);
  }
  std::sort(names_.begin(), names_.end());
}

void SafetensorsSet::open_file(const fs::path& path) {
  files_.emplace_back(path);
  for (const SafetensorsEntry& entry : files_.back().entries()) {
    file_of_[entry.name] = 0;
    names_.push_back(entry.name);
  }
}

void SafetensorsSet::open_index(const fs::path& path) {
  const nlohmann::json index = parse_json_file(path);
  const std::string name = path.string();
  check(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
        ErrorKind::format, name, ": weight_map: missing key: expected an object");
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    check(file.is_string() && is_plain_name(file.get<std::string>()), ErrorKind::format, name, ": ",
          tensor, ": not the name of a file beside the index: ", file.dump());
    const auto [at, is_new] = opened.emplace(file.get<std::string>(), files_.size());
    if (is_new) {
      files_.emplace_back(path.parent_path() / at->first);
    }
    check(files_[at->second].contains(tensor), ErrorKind::format, name, ": ", tensor,
          ": the index places it in ", at->first,
          ", which does not hold it; index and files do not belong together");
    file_of_[tensor] = at->second;
    names_.push_back(tensor);
  }
}

bool SafetensorsSet::contains(std::string_view tensor) const {
  return file_of_.contains(std::string(tensor));
}

Tensor SafetensorsSet::tensor(std::string_view tensor) const {
  const auto at = file_of_.find(std::string(tensor));
  if (at == file_of_.end()) {
    const std::string where =
        files_.empty() ? "the index" : fs::path(files_.front().name()).parent_path().string();
    throw Error(ErrorKind::format,
                concat(where, ": ", tensor, ": no such tensor",
                       names_.empty() ? "" : "; the nearest is ", nearest_path(tensor, names_)));
  }
  return files_[at->second].tensor(tensor);
}

TensorDict SafetensorsSet::tensors() const {
  TensorDict out;
  for (const std::string& name : names_) {
    out.add(name, tensor(name));
  }
  return out;
}

void write_safetensors_set(const fs::path& folder, const TensorDict& tensors, int64_t shard_bytes,
                           const SafetensorsMetadata& metadata) {
  const std::vector<TensorDict> shards = filled_shards(tensors, shard_bytes);
  if (shards.size() == 1) {
    write_safetensors(folder / single_name, tensors, metadata);
    return;
  }
  nlohmann::json index;
  index["metadata"]["total_size"] = tensors.bytes();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_safetensors(folder / name, shards[i], metadata);
    for (const auto& [tensor, unused] : shards[i]) {
      index["weight_map"][tensor] = name;
    }
  }
  write_file(folder / index_name, index.dump(2) + "\n");
}

}  // namespace ingot
