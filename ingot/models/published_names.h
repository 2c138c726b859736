#pragma once

#include <string>
#include <vector>

#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// How published tensors stand for ours. One published tensor may hold several of ours, joined along
// the output dimension end to end or alternating, and may store a map as [In, Out].
enum class Stored : bool { as_ours, transposed };

struct NamePair {
  std::string theirs;
  std::vector<std::string> ours;
  Stored stored = Stored::as_ours;
  int64_t alternating = 1;  // times that the parts take turns: heads, where q k v lie side by side
};

struct NameMap {
  std::vector<NamePair> pairs;
  std::vector<std::string> ignored;  // patterns of published tensors without a place in the model
  // Tensors that are in a file once more under another name: where they are read they must be the
  // same. `repeated` ones are written, `tied` ones are not.
  std::vector<NamePair> repeated, tied;
};

// Our tensors as views of published ones. `shapes` are the model's parameters, which say where
// joined tensors divide. Throws Error(format) that lists every published tensor that is missing, of
// another shape, or unknown.
TensorDict from_published(const NameMap& map, const TensorDict& published,
                          const TensorDict& shapes);

// The published tensors of ours (parameters, or gradients by the same names). Tensors joined or
// transposed are copies.
TensorDict to_published(const NameMap& map, const TensorDict& ours);

}  // namespace ingot
