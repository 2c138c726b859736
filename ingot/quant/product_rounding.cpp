#include "ingot/quant/product_rounding.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/quant/fp8_scaling.h"
#include "ingot/quant/microscaling.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::quant {
namespace {

constexpr std::array<std::pair<std::string_view, ProductFormat>, 6> table = {{
    {"fp8", ProductFormat::fp8},
    {"fp8_blocks", ProductFormat::fp8_blocks},
    {"mxfp8", ProductFormat::mxfp8},
    {"mxfp6", ProductFormat::mxfp6},
    {"mxfp4", ProductFormat::mxfp4},
    {"nvfp4", ProductFormat::nvfp4},
}};

using Values = std::span<float>;

void store(const std::vector<float>& from, Values to) {
  std::copy(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(to.size()), to.begin());
}

// A row in whole blocks of `block`, zeros behind it.
std::vector<float> padded(std::span<const float> row, size_t block) {
  std::vector<float> out(row.begin(), row.end());
  out.resize((row.size() + block - 1) / block * block);
  return out;
}

void round_rows(Values all, int64_t columns, const SmallFloat& element) {
  kernels::parallel_for(static_cast<int64_t>(all.size()) / std::max<int64_t>(1, columns), 16,
                        [&](int64_t begin, int64_t end) {
                          for (int64_t r = begin; r < end; ++r) {
                            const Values row = all.subspan(static_cast<size_t>(r * columns),
                                                           static_cast<size_t>(columns));
                            store(dequantized(microscaled(padded(row, 32), element)), row);
                          }
                        });
}

void round_nvfp4(Values all, int64_t columns) {
  const auto width = static_cast<size_t>(columns);
  const size_t wide = (width + 15) / 16 * 16;
  std::vector<float> whole;
  for (size_t begin = 0; begin < all.size(); begin += width) {
    const std::vector<float> row = padded(all.subspan(begin, width), 16);
    whole.insert(whole.end(), row.begin(), row.end());
  }
  const std::vector<float> back = dequantized(nvfp4(whole));
  for (size_t row = 0; row * width < all.size(); ++row) {
    std::copy_n(back.begin() + static_cast<std::ptrdiff_t>(row * wide), width,
                all.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
}

void round_values(Values all, int64_t columns, ProductFormat format, Operand operand) {
  const int64_t rows = columns == 0 ? 0 : static_cast<int64_t>(all.size()) / columns;
  switch (format) {
    case ProductFormat::fp8:
      store(dequantized(fp8_tensor(all, operand == Operand::gradient ? e5m2 : e4m3)), all);
      return;
    case ProductFormat::fp8_blocks: {
      const int64_t tile_rows = operand == Operand::weight ? 128 : 1;
      store(dequantized(fp8_tiles(all, rows, columns, tile_rows, 128, e4m3)), all);
      return;
    }
    case ProductFormat::mxfp8: round_rows(all, columns, e4m3); return;
    case ProductFormat::mxfp6: round_rows(all, columns, e3m2); return;
    case ProductFormat::mxfp4: round_rows(all, columns, e2m1); return;
    case ProductFormat::nvfp4: round_nvfp4(all, columns); return;
  }
}

bool leaves(ProductFormat format, Operand operand) {
  return operand == Operand::gradient &&
         (format == ProductFormat::mxfp4 || format == ProductFormat::nvfp4);
}

}  // namespace

std::vector<std::string> product_format_names() {
  std::vector<std::string> out;
  for (const auto& [name, format] : table) {
    out.emplace_back(name);
  }
  return out;
}

std::optional<ProductFormat> product_format_named(std::string_view name) {
  for (const auto& [known, format] : table) {
    if (known == name) {
      return format;
    }
  }
  return std::nullopt;
}

Tensor rounded_to(const Tensor& x, ProductFormat format, Operand operand) {
  check(is_float(x.dtype()) && x.dtype() != DType::f64 && x.rank() > 0, ErrorKind::dtype,
        "product rounding: takes f32, bf16 or f16 rows: got ", x.dtype(), " of shape ", x.shape());
  if (x.elements() == 0 || leaves(format, operand)) {
    return detach(x);
  }
  if (x.device().kind == DeviceKind::meta) {
    return empty(x.shape(), x.dtype(), x.device());
  }
  Tensor wide = converted(copy_of(x), DType::f32);
  round_values(wide.mutable_values<float>(), x.size(-1), format, operand);
  return converted(wide, x.dtype());
}

Tensor rounded_straight_through(const Tensor& x, ProductFormat format, Operand operand) {
  return record("product rounding", rounded_to(x, format, operand),
                wrt(x, [](const Tensor& dy) { return dy; }));
}

Tensor with_rounded_gradient(const Tensor& x, ProductFormat format) {
  return record("gradient rounding", detach(x), wrt(x, [format](const Tensor& dy) {
                  return rounded_to(dy, format, Operand::gradient);
                }));
}

}  // namespace ingot::quant
