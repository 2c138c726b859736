#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ingot/io/safetensors_header.h"

namespace ingot {

// A tensor that will be written: what safetensors says of it, but not where.
struct PlannedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  int64_t bytes() const { return shape.elements() * size_of(dtype); }
};

// Writes a folder's model.safetensors, or shards and their index where all take more than
// `shard_bytes`, piece by piece: no tensor need be in memory whole. The bytes are those that
// write_safetensors_set makes of the same tensors.
//   SafetensorsStream stream(folder, planned, shard_bytes, metadata);
//   for (const PlannedTensor& tensor : stream.order()) stream.write(…all its bytes, in pieces…);
//   stream.commit();
class SafetensorsStream {
 public:
  SafetensorsStream(std::filesystem::path folder, std::vector<PlannedTensor> tensors,
                    int64_t shard_bytes, SafetensorsMetadata metadata = {});
  ~SafetensorsStream();
  SafetensorsStream(const SafetensorsStream&) = delete;
  SafetensorsStream& operator=(const SafetensorsStream&) = delete;

  // The order in which tensors are to be written.
  const std::vector<PlannedTensor>& order() const { return order_; }
  void write(std::span<const std::byte> bytes);
  // Closes the last file and writes the index. Throws Error(internal) where bytes are missing.
  void commit();

 private:
  struct OpenFile;
  void open_next();

  std::filesystem::path folder_;
  SafetensorsMetadata metadata_;
  std::vector<PlannedTensor> order_;
  std::vector<size_t> shard_ends_;  // of each file, one past its last tensor in order_
  size_t files_done_ = 0;
  std::unique_ptr<OpenFile> open_;
};

}  // namespace ingot
