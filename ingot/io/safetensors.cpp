#include "ingot/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

constexpr size_t length_bytes = 8;
constexpr uint64_t longest_header = 100'000'000;  // as the format's reference reader

std::string_view header_text(std::span<const std::byte> file, const std::string& name) {
  check(file.size() >= length_bytes, ErrorKind::format, name, ": not a safetensors file: it has ",
        file.size(), " bytes, fewer than the header's length takes; it may be truncated");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), length_bytes);
  check(length <= longest_header, ErrorKind::format, name,
        ": not a safetensors file: the header would have ", length, " bytes; at most ",
        longest_header, " are allowed");
  check(length <= file.size() - length_bytes, ErrorKind::format, name,
        ": truncated: the header has ", length, " bytes, ", file.size() - length_bytes,
        " follow; fetch or write the file again");
  return {reinterpret_cast<const char*>(file.data()) + length_bytes, length};
}

void check_booleans(std::span<const std::byte> bytes, const SafetensorsFile& file,
                    const SafetensorsEntry& entry) {
  const auto wrong =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  check(wrong == bytes.end(), ErrorKind::format, file.name(), ": ", entry.name,
        ": a boolean is neither 0 nor 1: element ", wrong - bytes.begin(), " is ",
        wrong == bytes.end() ? 0 : static_cast<int>(*wrong));
}

SafetensorsHeader laid_out(const TensorDict& tensors, const SafetensorsMetadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors) {
    check(name != "__metadata__", ErrorKind::argument,
          "safetensors: __metadata__ is no name for a tensor");
    header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, tensor.bytes()});
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    const int64_t wide = size_of(a.dtype);
    const int64_t other = size_of(b.dtype);
    return wide != other ? wide > other : a.name < b.name;
  });
  int64_t end = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = std::exchange(end, end + entry.end);
    entry.end = end;
  }
  return header;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(std::make_shared<const MappedFile>(path)) {
  const std::span<const std::byte> all = file_->bytes();
  const std::string_view json = header_text(all, name());
  data_ = all.subspan(length_bytes + json.size());
  header_ = parse_safetensors_header(json, static_cast<int64_t>(data_.size()), name());
  for (size_t i = 0; i < header_.entries.size(); ++i) {
    index_.emplace(header_.entries[i].name, i);
  }
}

bool SafetensorsFile::contains(std::string_view tensor) const {
  return index_.contains(std::string(tensor));
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view tensor) const {
  const auto at = index_.find(std::string(tensor));
  if (at == index_.end()) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& one : entries()) {
      names.push_back(one.name);
    }
    throw Error(ErrorKind::format,
                concat(name(), ": ", tensor, ": no such tensor in the file",
                       names.empty() ? "" : "; the nearest is ", nearest_path(tensor, names)));
  }
  return header_.entries[at->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return data_.subspan(static_cast<size_t>(entry.begin),
                       static_cast<size_t>(entry.end - entry.begin));
}

std::span<const std::byte> SafetensorsFile::header_bytes() const {
  return file_->bytes().first(file_->bytes().size() - data_.size());
}

Tensor SafetensorsFile::tensor(std::string_view tensor) const {
  const SafetensorsEntry& about = entry(tensor);
  const std::span<const std::byte> content = bytes(about);
  if (about.dtype == DType::bool_) {
    check_booleans(content, *this, about);
  }
  const auto address = reinterpret_cast<uintptr_t>(content.data());
  if (content.empty() || address % static_cast<uintptr_t>(size_of(about.dtype)) != 0) {
    Tensor copy = empty(about.shape, about.dtype);
    if (!content.empty()) {
      std::memcpy(copy.fresh_view().data, content.data(), content.size());
    }
    return copy;
  }
  auto storage = std::make_shared<Storage>(content.data(), about.end - about.begin, file_);
  return {std::move(storage), about.shape, dense_strides(about.shape), 0, about.dtype};
}

TensorDict SafetensorsFile::tensors() const {
  TensorDict out;
  for (const SafetensorsEntry& one : entries()) {
    out.add(one.name, tensor(one.name));
  }
  return out;
}

void write_safetensors(const std::filesystem::path& path, const TensorDict& tensors,
                       const SafetensorsMetadata& metadata) {
  const SafetensorsHeader header = laid_out(tensors, metadata);
  for (const auto& [name, tensor] : tensors) {
    check(tensor.device().kind == DeviceKind::cpu, ErrorKind::device, path.string(), ": ", name,
          ": cannot be written: it is on the device ", tensor.device());
  }
  const std::string json = safetensors_header_text(header);
  const uint64_t length = json.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(json);
  for (const SafetensorsEntry& entry : header.entries) {
    const Tensor whole = dense(tensors.at(entry.name));
    file.write({static_cast<const std::byte*>(whole.view().data),
                static_cast<size_t>(entry.end - entry.begin)});
  }
  file.commit();
}

int64_t safetensors_bytes(const TensorDict& tensors, const SafetensorsMetadata& metadata) {
  const std::string json = safetensors_header_text(laid_out(tensors, metadata));
  return static_cast<int64_t>(length_bytes + json.size()) + tensors.bytes();
}

}  // namespace ingot
