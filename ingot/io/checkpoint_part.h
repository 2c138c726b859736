#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ingot/io/manifest.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// The files of one part of a checkpoint. A part is one file, parameters.safetensors, or several
// where tensors did not change since the checkpoint before (frozen weights): these stand in files
// of their own, parameters.since-00002000.safetensors, which later checkpoints link to instead of
// writing them again, so that they take no time and no space.

// What a checkpoint that is there already says of itself.
struct EarlierCheckpoint {
  std::filesystem::path path;
  Manifest manifest;
};

// Writes the files of the part `name` into `folder`, and returns what a manifest says of them.
// Files of `earlier` that hold the same tensors (by their hashes, and read again to be sure) are
// linked; tensors that it has too, but beside changed ones, are written to a file of their own
// where they take 64 KiB or more. Throws Error(io).
std::vector<ManifestFile> write_part(const std::filesystem::path& folder, const std::string& name,
                                     const TensorDict& tensors, int64_t step,
                                     const std::optional<EarlierCheckpoint>& earlier);

// "parameters" for parameters.since-00002000.safetensors. Throws Error(format) naming `manifest`
// where the file is none of a part.
std::string part_of_file(const std::string& file, const std::string& manifest);

// The tensors of a file, every byte verified against the manifest. Throws Error(io) or
// Error(format).
TensorDict verified_file(const std::filesystem::path& path, const ManifestFile& expected);

}  // namespace ingot
