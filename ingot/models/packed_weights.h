#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ingot/quant/packed_groups.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Published folders whose linear maps are integers of 4 or 8 bits, as the library
// compressed-tensors lays them out ("pack-quantized"); transformers and vLLM read them. For a map W
// [N, K]:
//   NAME.weight_packed      i32 [N, ⌈K · bits / 32⌉]
//   NAME.weight_scale       [N, K / group]
//   NAME.weight_shape       i32 or i64 [2]: N, K
//   NAME.weight_zero_point  i32 [⌈N · bits / 32⌉, K / group], packed along N: only where the zeros
//                           are not 0 ("symmetric": false)
// config.json says bits and group in "quantization_config".

struct PackedFormat {
  int64_t bits = 4;
  int64_t group = 64;  // columns under a scale; 0: all of a row
  bool symmetric = true;

  quant::PackedGroups groups(int64_t columns) const { return {bits, group > 0 ? group : columns}; }
};

// What config.json says; none where it names no quantization. Throws Error(config) naming `file`
// and the key of one that Ingot does not read.
std::optional<PackedFormat> packed_format(const nlohmann::json& config, const std::string& file);

// The "quantization_config" that says it. `ignore`: modules that are not packed.
nlohmann::json packed_config(const PackedFormat& format, const std::vector<std::string>& ignore);

// Whether a published tensor that stands for `ours` [N, K] is packed: maps of the layers, but no
// router, whose errors choose other experts.
bool is_packed_map(const std::string& ours, const Shape& shape, const PackedFormat& format);

// The tensors of W in the type of its scales, and all others as they are. Throws Error(format)
// naming the tensor where the parts do not fit each other.
TensorDict unpacked(const TensorDict& stored, const PackedFormat& format,
                    const std::string& origin);

// The parts of a map [N, K]; scales are rounded to `scale_type` before codes are chosen. Throws
// Error(numeric) naming the row of a value that is not finite.
struct PackedMap {
  std::vector<int32_t> words;  // [N, ⌈K · bits / 32⌉]
  std::vector<float> scales;   // [N, K / group]
};
PackedMap packed_map(std::span<const float> values, int64_t rows, const PackedFormat& format,
                     DType scale_type);

}  // namespace ingot
