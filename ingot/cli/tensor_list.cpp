#include "ingot/cli/tensor_list.h"

#include <algorithm>
#include <cstring>

#include "ingot/base/files.h"
#include "ingot/io/checkpoint.h"
#include "ingot/io/gguf.h"
#include "ingot/io/release.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/quant/ggml_codec.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr int64_t values_at_once = int64_t{1} << 20;  // 8 MiB of doubles

void read_plain(const Tensor& tensor, int64_t begin, int64_t end, std::span<double> out) {
  const Tensor flat = reshaped(tensor, {tensor.elements()});
  const Tensor wide = converted(sliced(flat, 0, begin, end), DType::f64);
  std::ranges::copy(wide.values<double>(), out.begin());
}

void read_blocks(const GgufTensor& tensor, std::span<const std::byte> bytes, int64_t begin,
                 int64_t end, std::span<double> out) {
  std::vector<float> single(out.size());
  const auto first = static_cast<size_t>(bytes_of(tensor.type, begin));
  const auto last = static_cast<size_t>(bytes_of(tensor.type, end));
  quant::decode_values(tensor.type, bytes.subspan(first, last - first), single);
  std::ranges::copy(single, out.begin());
}

void add_file(const std::shared_ptr<const SafetensorsFile>& file, const std::string& prefix,
              TensorListing& out) {
  for (const SafetensorsEntry& entry : file->entries()) {
    out.tensors.push_back(
        {prefix + entry.name, std::string(name(entry.dtype)), entry.shape, file->bytes(entry), 1,
         [file, tensor = entry.name](int64_t begin, int64_t end, std::span<double> values) {
           read_plain(file->tensor(tensor), begin, end, values);
         }});
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
                           file->bytes(tensor), layout_of(tensor.type).block_values,
                           [file, tensor](int64_t begin, int64_t end, std::span<double> values) {
                             read_blocks(tensor, file->bytes(tensor), begin, end, values);
                           }});
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

void for_each_piece(const ListedTensor& tensor,
                    const std::function<void(std::span<const double>, int64_t)>& f) {
  const int64_t all = tensor.shape.elements();
  const int64_t step = values_at_once / tensor.step * tensor.step;
  std::vector<double> values;
  for (int64_t begin = 0; begin < all; begin += step) {
    const int64_t end = std::min(all, begin + step);
    values.resize(static_cast<size_t>(end - begin));
    tensor.read(begin, end, values);
    f(values, begin);
    release_pages(tensor.bytes);
  }
}

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
