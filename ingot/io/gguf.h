#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/base/files.h"
#include "ingot/base/ggml_type.h"
#include "ingot/base/shape.h"
#include "ingot/io/gguf_value.h"

namespace ingot {

// One tensor of a GGUF file. The file lists its dimensions fastest first; `shape` is in our order.
struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  Shape shape;
  int64_t begin = 0;  // bytes [begin, end) of the data, which starts at an aligned place
  int64_t end = 0;

  bool operator==(const GgufTensor& other) const = default;
};

// What precedes the data of a GGUF file (ggml: docs/gguf.md), versions 1 to 3: magic, version,
// counts, metadata, tensors. Version 1 counts in 32 bits where the later ones use 64.
struct GgufHeader {
  uint32_t version = 3;
  int64_t alignment = 32;  // of the data and every tensor in it: general.alignment
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the order of the header
  int64_t data_begin = 0;           // offset of the data in the file
};

// Reads the header of `file`, all of whose bytes are given. Enforced: every count and length fits
// the bytes there are; no name is there twice; types are known; dimensions are positive, at most
// four, and rows are whole blocks; tensors lie aligned within the file and do not overlap. Throws
// Error(format) naming `name` and the key or tensor. Nothing is allocated by a number that the file
// states.
GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& name);

// The header as version 3 writes it, up to where the data begins, padding included; sets begin and
// end of the tensors (in the given order) and data_begin. Throws Error(argument) for an alignment
// that is no power of two, a name used twice or of more than 64 bytes.
std::string gguf_header_text(GgufHeader& header);

// A GGUF file mapped into memory: opening reads the header, a tensor's bytes are read when used.
class GgufFile {
 public:
  explicit GgufFile(const std::filesystem::path& path);

  std::string name() const { return file_->path().string(); }
  const GgufHeader& header() const { return header_; }
  const GgufMetadata& metadata() const { return header_.metadata; }
  const std::vector<GgufTensor>& tensors() const { return header_.tensors; }

  bool contains(std::string_view tensor) const { return index_.contains(std::string(tensor)); }
  // Throws Error(format) naming the nearest tensor present.
  const GgufTensor& tensor(std::string_view tensor) const;
  std::span<const std::byte> bytes(const GgufTensor& tensor) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  GgufHeader header_;
  std::unordered_map<std::string, size_t> index_;
};

// Writes a GGUF file of version 3 piece by piece, so that no tensor need be in memory whole. The
// file appears at commit(), whole or not at all.
class GgufWriter {
 public:
  // Writes the header. begin and end of the tensors are set here. Throws as gguf_header_text does.
  GgufWriter(const std::filesystem::path& path, GgufHeader header);

  const GgufHeader& header() const { return header_; }
  // The next bytes of the data: the tensors' bytes in the order of the header. Padding between them
  // is written here.
  void write(std::span<const std::byte> bytes);
  // Throws Error(internal) where bytes are missing.
  void commit();

 private:
  void pad_to(int64_t offset);

  AtomicFile file_;
  GgufHeader header_;
  size_t next_ = 0;      // the tensor being written
  int64_t written_ = 0;  // bytes of the data
};

}  // namespace ingot
