#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot::quant {

// What the operands of a linear map's products are rounded to: the arithmetic of processors that
// multiply 8- or 4-bit numbers and sum in f32, emulated. Numbers of these formats times each other
// are exact in f32, so a product of rounded operands is what such a processor sums.
//   fp8         E4M3 under one scale a tensor (for weights, activations), E5M2 (for gradients):
//               Micikevicius et al. 2022, arXiv:2209.05433
//   fp8_blocks  E4M3 under a scale a row of 128 values; weights 128 × 128: DeepSeek-AI 2024,
//               arXiv:2412.19437, section 3.3
//   mxfp8, mxfp6, mxfp4   E4M3, E3M2, E2M1 in blocks of 32 (microscaling.h); mxfp4 leaves gradients
//   nvfp4       E2M1 in blocks of 16 (microscaling.h); leaves gradients
enum class ProductFormat : uint8_t { fp8, fp8_blocks, mxfp8, mxfp6, mxfp4, nvfp4 };
enum class Operand : uint8_t { input, weight, gradient };

std::vector<std::string> product_format_names();  // "fp8", …
std::optional<ProductFormat> product_format_named(std::string_view name);

// x [..., N] rounded, of its own type and shape, without history. Blocks lie along the last
// dimension; the last block of a row may be smaller. Scales are those of x itself ("current").
Tensor rounded_to(const Tensor& x, ProductFormat format, Operand operand);

// The same with a gradient: that of the identity (straight through; Bengio, Léonard, Courville
// 2013, arXiv:1308.3432).
Tensor rounded_straight_through(const Tensor& x, ProductFormat format, Operand operand);
// x itself; its gradient is rounded.
Tensor with_rounded_gradient(const Tensor& x, ProductFormat format);

}  // namespace ingot::quant
