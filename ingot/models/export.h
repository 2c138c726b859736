#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ingot/io/gguf.h"
#include "ingot/models/packed_weights.h"
#include "ingot/models/stored_model.h"

namespace ingot {

// Stored models written as another kind of file, tensor by tensor in pieces of a bounded size.

struct ExportResult {
  int64_t bytes = 0;  // of weights written
  int64_t tensors = 0;
  std::vector<std::string> lacks;      // see put_texts
  std::vector<std::string> differs;    // see gguf_differences
  std::vector<std::string> otherwise;  // tensors that could not have the type asked for, and theirs
};

// Called after every piece with the values written so far and all there are.
using ExportProgress = std::function<void(int64_t values, int64_t all)>;

// What a tensor of a GGUF file is stored in if `wanted` is asked for:
//   vectors, routers and constants: F32, as llama.cpp computes with them
//   the map to the logits: Q6_K at least, whose errors would reach every token
//   rows that are no whole blocks: the next wider type of smaller blocks, F16 in the end
GgmlType stored_type(const std::string& tensor, const Shape& shape, GgmlType wanted,
                     bool to_logits);

// Writes a GGUF file. `more` is metadata to add. Throws Error(config) naming what the configuration
// has and a GGUF file of its architecture cannot say.
ExportResult write_gguf(const StoredModel& model, const std::filesystem::path& path, GgmlType type,
                        const GgufMetadata& more = {}, const ExportProgress& progress = nullptr);

// Writes a GGUF file again with its matrices in another type (none: in those they have), everything
// else as it is, whatever its architecture.
ExportResult rewrite_gguf(const GgufFile& file, const std::filesystem::path& path,
                          std::optional<GgmlType> type, const GgufMetadata& more = {},
                          const ExportProgress& progress = nullptr);

struct FolderOptions {
  DType dtype = DType::f32;
  std::optional<PackedFormat> packed =
      std::nullopt;  // maps of the layers in integers; dtype is that of the rest
  int64_t shard_bytes = 5'000'000'000;
};

// Writes a folder in the Hugging Face layout. Throws Error(config) where a family's maps cannot be
// packed.
ExportResult write_folder(const StoredModel& model, const std::filesystem::path& folder,
                          const FolderOptions& options, const ExportProgress& progress = nullptr);

// "" where a GGUF file can say all of a configuration, otherwise what it cannot.
std::string gguf_misfit(const DecoderConfig& config, const std::string& model_type);

}  // namespace ingot
