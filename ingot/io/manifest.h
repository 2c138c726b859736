#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/base/dtype.h"
#include "ingot/base/shape.h"

namespace ingot {

// manifest.json of a checkpoint: what each file must hold, so that damage is found and named.

struct ManifestTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::string hash;  // XXH3-128 of its bytes
};

struct ManifestFile {
  std::string name;  // "parameters.safetensors"
  int64_t bytes = 0;
  std::string header_hash;  // XXH3-128 of what precedes the tensors' bytes
  std::vector<ManifestTensor> tensors;
};

struct Manifest {
  int64_t step = 0;
  std::vector<ManifestFile> files;
  std::string state;   // JSON
  std::string recipe;  // TOML
};

// The manifest as JSON, ended by a hash over all of its own bytes. Throws Error(argument) where the
// state is no JSON.
std::string manifest_text(const Manifest& manifest);

// Reads it back. Throws Error(format) naming `file` where a byte was changed, a field is missing,
// or the format version is not this one.
Manifest parse_manifest(std::string_view text, const std::string& file);

}  // namespace ingot
