#include "ingot/quant/microscaling.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"

namespace ingot::quant {
namespace {

constexpr int64_t nv_block = 16;

// max |x|; NaN where one is.
float largest_magnitude(std::span<const float> values) {
  float most = 0;
  for (const float x : values) {
    most = std::isnan(x) || std::isnan(most) ? x : std::max(most, std::abs(x));
    if (std::isnan(most)) {
      return most;
    }
  }
  return most;
}

void check_blocks(const char* what, size_t values, int64_t block) {
  check(block > 0 && values % static_cast<size_t>(block) == 0, ErrorKind::shape, what,
        ": the values are no whole blocks: ", values, " values, blocks of ", block);
}

int scale_exponent(double most, const SmallFloat& element, ScaleRule rule) {
  if (rule == ScaleRule::floor) {
    return std::ilogb(most) - element.largest_exponent();
  }
  int fraction_exponent = 0;  // quotient = f · 2^e with f in [1/2, 1)
  const double fraction = std::frexp(most / element.largest(), &fraction_exponent);
  return fraction == 0.5 ? fraction_exponent - 1 : fraction_exponent;
}

}  // namespace

MicroscalingCodes microscaled(std::span<const float> values, const SmallFloat& element,
                              ScaleRule rule, int64_t block) {
  check_blocks("microscaling", values.size(), block);
  MicroscalingCodes out{element, block, {}, {}};
  out.codes.reserve(values.size());
  const auto length = static_cast<size_t>(block);
  for (size_t begin = 0; begin < values.size(); begin += length) {
    const auto group = values.subspan(begin, length);
    const float most = largest_magnitude(group);
    if (std::isnan(most)) {
      out.scales.push_back(255);
      out.codes.insert(out.codes.end(), length, 0);
      continue;
    }
    const uint8_t scale = most == 0          ? uint8_t{0}
                          : std::isinf(most) ? uint8_t{254}
                                             : encoded_e8m0(scale_exponent(most, element, rule));
    out.scales.push_back(scale);
    const double factor = decoded_e8m0(scale);
    for (const float x : group) {
      out.codes.push_back(encoded(element, static_cast<double>(x) / factor));
    }
  }
  return out;
}

std::vector<float> dequantized(const MicroscalingCodes& codes) {
  std::vector<float> out;
  out.reserve(codes.codes.size());
  for (size_t i = 0; i < codes.codes.size(); ++i) {
    const uint8_t scale = codes.scales[i / static_cast<size_t>(codes.block)];
    out.push_back(static_cast<float>(decoded_e8m0(scale) * decoded(codes.element, codes.codes[i])));
  }
  return out;
}

Mxint8Codes mxint8(std::span<const float> values, int64_t block) {
  check_blocks("mxint8", values.size(), block);
  Mxint8Codes out{block, {}, {}};
  out.codes.reserve(values.size());
  const auto length = static_cast<size_t>(block);
  for (size_t begin = 0; begin < values.size(); begin += length) {
    const auto group = values.subspan(begin, length);
    const float most = largest_magnitude(group);
    if (std::isnan(most)) {
      out.scales.push_back(255);
      out.codes.insert(out.codes.end(), length, 0);
      continue;
    }
    const uint8_t scale = most == 0          ? uint8_t{0}
                          : std::isinf(most) ? uint8_t{254}
                                             : encoded_e8m0(std::ilogb(most));
    out.scales.push_back(scale);
    const double unit = decoded_e8m0(scale) / 64;
    for (const float x : group) {
      const double code = std::nearbyint(static_cast<double>(x) / unit);
      out.codes.push_back(static_cast<int8_t>(std::clamp(code, -127.0, 127.0)));
    }
  }
  return out;
}

std::vector<float> dequantized(const Mxint8Codes& codes) {
  std::vector<float> out;
  out.reserve(codes.codes.size());
  for (size_t i = 0; i < codes.codes.size(); ++i) {
    const uint8_t scale = codes.scales[i / static_cast<size_t>(codes.block)];
    out.push_back(static_cast<float>(decoded_e8m0(scale) / 64 * codes.codes[i]));
  }
  return out;
}

double bits_per_value(const MicroscalingCodes& codes) {
  return codes.element.bits() + 8.0 / static_cast<double>(codes.block);
}

Nvfp4Codes nvfp4(std::span<const float> values) {
  check_blocks("nvfp4", values.size(), nv_block);
  Nvfp4Codes out;
  const float most = largest_magnitude(values);
  check(std::isfinite(most), ErrorKind::numeric, "nvfp4: a value is not finite: got ", most);
  const auto range = static_cast<float>(e2m1.largest() * e4m3.largest());
  out.tensor_scale = most == 0 ? 1 : most / range;
  for (size_t begin = 0; begin < values.size(); begin += nv_block) {
    const auto group = values.subspan(begin, nv_block);
    const double wanted = static_cast<double>(largest_magnitude(group)) / e2m1.largest() /
                          static_cast<double>(out.tensor_scale);
    // A scale that rounds to 0 could not be divided by.
    const uint8_t scale =
        wanted == 0 ? encoded(e4m3, 1) : std::max<uint8_t>(1, encoded(e4m3, wanted));
    out.scales.push_back(scale);
    const double factor = decoded(e4m3, scale) * static_cast<double>(out.tensor_scale);
    for (const float x : group) {
      out.codes.push_back(encoded(e2m1, static_cast<double>(x) / factor));
    }
  }
  return out;
}

std::vector<float> dequantized(const Nvfp4Codes& codes) {
  std::vector<float> out;
  for (size_t i = 0; i < codes.codes.size(); ++i) {
    const double factor =
        decoded(e4m3, codes.scales[i / nv_block]) * static_cast<double>(codes.tensor_scale);
    out.push_back(static_cast<float>(factor * decoded(e2m1, codes.codes[i])));
  }
  return out;
}

}  // namespace ingot::quant
