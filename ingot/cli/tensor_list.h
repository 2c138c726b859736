#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ingot/base/shape.h"

namespace ingot {

// The tensors of whatever Ingot keeps tensors in, in one form for `ingot ckpt`.
struct ListedTensor {
  std::string name;  // with the file in front where there are several: "optimizer: m/embedding"
  std::string dtype;
  Shape shape;
  std::span<const std::byte> bytes;  // of a map that the listing keeps
  int64_t step = 1;                  // values that are stored together: those of a block
  // Values [begin, end), both multiples of step; throws Error(dtype) for a type that Ingot does not
  // read.
  std::function<void(int64_t begin, int64_t end, std::span<double> out)> read;
};

// Calls f(values, begin) for a tensor piece by piece, a few MiB at a time, and lets the pages that
// were read go: memory does not grow with the tensor.
void for_each_piece(const ListedTensor& tensor,
                    const std::function<void(std::span<const double> values, int64_t begin)>& f);

struct TensorListing {
  std::string kind;                                        // "GGUF file"
  std::vector<std::pair<std::string, std::string>> about;  // what the file says of itself
  std::vector<ListedTensor> tensors;
  std::shared_ptr<const void> owner;
};

// `path`: a run's folder or its checkpoints (the newest is taken), one checkpoint, a folder or file
// of safetensors, or a GGUF file. Reads headers alone. Throws Error(format) for anything else.
TensorListing list_tensors(const std::filesystem::path& path);

// The folder of the checkpoint that list_tensors would take; empty where `path` is of no run.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

}  // namespace ingot
