#pragma once

#include <functional>
#include <memory>

#include "ingot/ops/coded_linear.h"
#include "ingot/quant/nf4.h"

namespace ingot::quant {

// Weights of linear maps in few bits, decoded a block of rows at a time (ops/coded_linear.h).

// NF4 with blocks of the row-major weight. weight: [Out, In], floating-point; on the meta device
// its size alone is known.
std::shared_ptr<const CodedWeight> nf4_weight(const Tensor& weight, int64_t block = 64,
                                              ScaleStorage scales = ScaleStorage::doubled);

// 8 bits with a scale for every 64 features (ops/int8_linear.h).
std::shared_ptr<const CodedWeight> int8_rows(const Tensor& weight);

// Rows that are read from somewhere else, such as the blocks of a GGUF file:
// read(begin, end, out) fills rows [begin, end) in f32. `bytes`: what they take there.
using ReadRows = std::function<void(int64_t begin, int64_t end, std::span<float> out)>;
std::shared_ptr<const CodedWeight> read_weight(int64_t rows, int64_t columns, int64_t bytes,
                                               Device device, ReadRows read);

}  // namespace ingot::quant
