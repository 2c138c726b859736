#include "ingot/cli/tensor_list.h"

#include <algorithm>
#include <cstring>

#include "ingot/base/files.h"
#include "ingot/io/checkpoint.h"
#include "ingot/io/gguf.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/quant/ggml_codec.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = dense(converted(tensor, DType::f64));
  const auto all = wide.values<double>();
  return {all.begin(), all.end()};
}

std::vector<double> values_of(const GgufTensor& tensor, std::span<const std::byte> bytes) {
  std::vector<float> single(static_cast<size_t>(tensor.shape.elements()));
  quant::decode_values(tensor.type, bytes, single);
  return {single.begin(), single.end()};
}

void add_file(const std::shared_ptr<const SafetensorsFile>& file, const std::string& prefix,
              TensorListing& out) {
  for (const SafetensorsEntry& entry : file->entries()) {
    out.tensors.push_back(
        {prefix + entry.name, std::string(name(entry.dtype)), entry.shape, file->bytes(entry),
         [file, tensor = entry.name] { return values_of(file->tensor(tensor)); }});
  }
  for (const auto& [key, value] : file->metadata()) {
    out.about.emplace_back(prefix + key, value);
  }
}

TensorListing of_gguf(const fs::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  TensorListing out;
  out.kind = concat("GGUF file of version ", file->header().version);
  for (const auto& [key, value] : file->metadata()) {
    out.about.emplace_back(key, shown(value));
  }
  for (const GgufTensor& tensor : file->tensors()) {
    out.tensors.push_back({tensor.name, std::string(name(tensor.type)), tensor.shape,
                           file->bytes(tensor),
                           [file, tensor] { return values_of(tensor, file->bytes(tensor)); }});
  }
  out.owner = file;
  return out;
}

TensorListing of_safetensors(const fs::path& path) {
  const auto set = std::make_shared<const SafetensorsSet>(path);
  TensorListing out;
  out.kind = set->files().size() == 1 ? "safetensors file"
                                      : concat(set->files().size(), " safetensors files");
  for (const SafetensorsFile& file : set->files()) {
    add_file({set, &file}, "", out);
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const ListedTensor& a, const ListedTensor& b) { return a.name < b.name; });
  out.owner = set;
  return out;
}

TensorListing of_checkpoint(const fs::path& path) {
  TensorListing out;
  out.kind = "checkpoint " + path.filename().string();
  for (const std::string& name : list_folder(path)) {
    if (name.ends_with(".safetensors")) {
      const std::string part = name.substr(0, name.find('.'));
      add_file(std::make_shared<const SafetensorsFile>(path / name), part + ": ", out);
    }
  }
  return out;
}

bool starts_with(const fs::path& path, std::string_view magic) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

fs::path checkpoint_at(const fs::path& path) {
  if (!is_folder(path)) {
    return {};
  }
  if (file_exists(path / "manifest.json")) {
    return path;
  }
  for (const fs::path& folder : {path / "checkpoints", path}) {
    const auto steps = is_folder(folder) ? checkpoint_steps(folder) : std::vector<int64_t>{};
    if (!steps.empty()) {
      return checkpoint_path(folder, steps.back());
    }
  }
  return {};
}

TensorListing list_tensors(const fs::path& path) {
  check(file_exists(path), ErrorKind::io, path.string(), ": no such file or folder");
  if (const fs::path checkpoint = checkpoint_at(path); !checkpoint.empty()) {
    return of_checkpoint(checkpoint);
  }
  return !is_folder(path) && starts_with(path, "GGUF") ? of_gguf(path) : of_safetensors(path);
}

}  // namespace ingot
