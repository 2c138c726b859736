#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/base/dtype.h"
#include "ingot/base/shape.h"

namespace ingot {

// The header of a safetensors file: JSON that says where each tensor's bytes stand.

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t begin = 0;  // bytes [begin, end) of the data, which starts behind the header
  int64_t end = 0;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  SafetensorsMetadata metadata;
};

// Reads the JSON of a header before `data_bytes` bytes of data. Every rule of the format is
// enforced: the tensors' bytes lie within the data, do not overlap, leave no gap, and are as many
// as dtype and shape make; no name is there twice. Throws Error(format) naming `file` and the
// tensor. Nothing is allocated by a number that the text states.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes,
                                           const std::string& file);

// The JSON for these entries, padded with blanks to a multiple of eight bytes.
std::string safetensors_header_text(const SafetensorsHeader& header);

// "BF16" for bf16.
std::string_view safetensors_name(DType type);

}  // namespace ingot
