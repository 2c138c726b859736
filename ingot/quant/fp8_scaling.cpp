#include "ingot/quant/fp8_scaling.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"

namespace ingot::quant {

float fp8_scale(float most, const SmallFloat& format) {
  if (most == 0 || !std::isfinite(most)) {
    return 1;
  }
  const double scale = format.largest() / static_cast<double>(most);
  // For a maximum that is subnormal the quotient lies beyond f32.
  return static_cast<float>(std::min(scale, 0x1p127));
}

Fp8Codes fp8_tiles(std::span<const float> values, int64_t rows, int64_t columns, int64_t tile_rows,
                   int64_t tile_columns, const SmallFloat& format) {
  check(rows >= 0 && columns >= 0 && tile_rows > 0 && tile_columns > 0 &&
            rows * columns == static_cast<int64_t>(values.size()),
        ErrorKind::shape, "fp8: the shape does not fit: ", rows, " rows of ", columns,
        " in tiles of ", tile_rows, " by ", tile_columns, ", ", values.size(), " values");
  Fp8Codes out{format, rows, columns, tile_rows, tile_columns, {}, {}};
  out.codes.resize(values.size());
  for (int64_t r = 0; r < rows; r += tile_rows) {
    for (int64_t c = 0; c < columns; c += tile_columns) {
      const int64_t row_end = std::min(rows, r + tile_rows);
      const int64_t column_end = std::min(columns, c + tile_columns);
      const auto each = [&](auto&& f) {
        for (int64_t i = r; i < row_end; ++i) {
          for (int64_t j = c; j < column_end; ++j) {
            f(static_cast<size_t>(i * columns + j));
          }
        }
      };
      float most = 0;
      each([&](size_t at) { most = std::max(most, std::abs(values[at])); });
      const float scale = fp8_scale(most, format);
      out.scales.push_back(scale);
      each([&](size_t at) {
        out.codes[at] = encoded(format, static_cast<double>(values[at] * scale));
      });
    }
  }
  return out;
}

Fp8Codes fp8_tensor(std::span<const float> values, const SmallFloat& format) {
  const auto count = static_cast<int64_t>(values.size());
  return fp8_tiles(values, 1, count, 1, std::max<int64_t>(1, count), format);
}

Fp8Codes fp8_tensor(std::span<const float> values, const SmallFloat& format, float scale) {
  const auto count = static_cast<int64_t>(values.size());
  Fp8Codes out{format, 1, count, 1, std::max<int64_t>(1, count), {scale}, {}};
  for (const float x : values) {
    out.codes.push_back(encoded(format, static_cast<double>(x * scale)));
  }
  return out;
}

std::vector<float> dequantized(const Fp8Codes& codes) {
  std::vector<float> out(codes.codes.size());
  const int64_t tiles = (codes.columns + codes.tile_columns - 1) / codes.tile_columns;
  for (size_t at = 0; at < out.size(); ++at) {
    const int64_t row = static_cast<int64_t>(at) / codes.columns / codes.tile_rows;
    const int64_t column = static_cast<int64_t>(at) % codes.columns / codes.tile_columns;
    const double scale =
        static_cast<double>(codes.scales[static_cast<size_t>(row * tiles + column)]);
    out[at] = static_cast<float>(decoded(codes.format, codes.codes[at]) / scale);
  }
  return out;
}

float DelayedScale::scale(const SmallFloat& format) const {
  if (history_.empty()) {
    return 1;
  }
  const float most = *std::max_element(history_.begin(), history_.end());
  return std::ldexp(fp8_scale(most, format), -margin_);
}

void DelayedScale::observe(float most) {
  history_.push_back(most);
  if (static_cast<int64_t>(history_.size()) > length_) {
    history_.pop_front();
  }
}

}  // namespace ingot::quant
