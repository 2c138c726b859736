#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/base/files.h"
#include "ingot/io/safetensors_header.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// One safetensors file: eight bytes with the header's length (little endian), the header (JSON),
// the tensors' bytes. Opening reads and checks the header alone; a tensor's bytes are read when
// used.
class SafetensorsFile {
 public:
  // Throws Error(io) where the file cannot be read, Error(format) where it breaks a rule of the
  // format; see parse_safetensors_header.
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::string name() const { return file_->path().string(); }
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const SafetensorsMetadata& metadata() const { return header_.metadata; }

  bool contains(std::string_view tensor) const;
  // Throws Error(format) naming the nearest tensor present.
  const SafetensorsEntry& entry(std::string_view tensor) const;

  // The tensor as it lies in the file: its storage is the mapping, read only, and keeps it alive.
  // One that is not aligned to its element size (files of older writers) is copied instead. Throws
  // Error(format) where a boolean is neither 0 nor 1.
  Tensor tensor(std::string_view tensor) const;
  TensorDict tensors() const;  // all of them, in the order of entries()

  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  std::span<const std::byte> header_bytes()
      const;  // the length and the JSON: what precedes the data

 private:
  std::shared_ptr<const MappedFile> file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
  std::span<const std::byte> data_;
};

// Writes all tensors to `path`, which appears whole or not at all. The bytes depend on the tensors
// and metadata alone: larger elements first (which aligns all of them), then by name. Views are
// written dense. Throws Error(io); Error(device) for a meta tensor; Error(argument) for a tensor
// named
// "__metadata__".
void write_safetensors(const std::filesystem::path& path, const TensorDict& tensors,
                       const SafetensorsMetadata& metadata = {});

// How many bytes write_safetensors would write.
int64_t safetensors_bytes(const TensorDict& tensors, const SafetensorsMetadata& metadata = {});

}  // namespace ingot
