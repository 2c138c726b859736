#include "ingot/quant/nf4.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/quant/codebook.h"
#include "ingot/tensor/factories.h"

namespace ingot::quant {
namespace {

constexpr int64_t blocks_per_scale = 256;

// Magnitudes as codes of 8 bits.
void encode_scales(std::span<const float> absmax, Nf4Codes& out) {
  double sum = 0;
  for (const float x : absmax) {
    sum += x;
  }
  out.offset = static_cast<float>(sum / static_cast<double>(std::max<size_t>(1, absmax.size())));
  auto codes = out.scale_codes.mutable_values<uint8_t>();
  auto scales = out.scale_scales.mutable_values<float>();
  for (size_t begin = 0; begin < absmax.size(); begin += blocks_per_scale) {
    const size_t end = std::min<size_t>(absmax.size(), begin + blocks_per_scale);
    float most = 0;
    for (size_t i = begin; i < end; ++i) {
      most = std::max(most, std::abs(absmax[i] - out.offset));
    }
    scales[begin / blocks_per_scale] = most;
    for (size_t i = begin; i < end; ++i) {
      const float x = most > 0 ? (absmax[i] - out.offset) / most : 0.0F;
      codes[i] = static_cast<uint8_t>(nearest_entry(dynamic_map(true), x));
    }
  }
}

// Codes of all values, and the magnitudes of their blocks.
void encode_values(std::span<const float> values, int64_t block, std::span<uint8_t> packed,
                   std::span<float> absmax) {
  kernels::parallel_for(static_cast<int64_t>(absmax.size()), 64, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const auto begin = static_cast<size_t>(b * block);
      const auto x =
          values.subspan(begin, std::min(values.size() - begin, static_cast<size_t>(block)));
      float most = 0;
      for (const float value : x) {
        most = std::max(most, std::abs(value));
      }
      absmax[static_cast<size_t>(b)] = most;
      for (size_t i = 0; i < x.size(); ++i) {
        const uint8_t code = nf4_nearest(most > 0 ? x[i] / most : 0.0F);
        uint8_t& byte = packed[(begin + i) / 2];
        byte = static_cast<uint8_t>(i % 2 == 0 ? code << 4 : byte | code);
      }
    }
  });
}

int64_t bytes_of(const Tensor& x) { return x.defined() ? x.bytes() : 0; }

uint8_t code_at(const Nf4Codes& codes, int64_t i) {
  const uint8_t byte = codes.packed.values<uint8_t>()[static_cast<size_t>(i / 2)];
  return i % 2 == 0 ? byte >> 4 : byte & 15;
}

}  // namespace

uint8_t nf4_nearest(float x) { return static_cast<uint8_t>(nearest_entry(nf4_codebook, x)); }

int64_t Nf4Codes::bytes() const {
  return bytes_of(packed) + bytes_of(absmax) + bytes_of(scale_codes) + bytes_of(scale_scales);
}

double Nf4Codes::bits_per_value() const {
  return 8 * static_cast<double>(bytes()) / static_cast<double>(std::max<int64_t>(1, count));
}

Nf4Codes nf4_codes(const Tensor& values, int64_t block, ScaleStorage scales) {
  check(block > 0 && block % 2 == 0, ErrorKind::argument,
        "nf4: blocks must be of an even number of values: got ", block);
  const Device device = values.device();
  Nf4Codes out;
  out.count = values.elements();
  out.block = block;
  const int64_t blocks = (out.count + block - 1) / block;
  out.packed = empty({(out.count + 1) / 2}, DType::u8, device);
  Tensor absmax = empty({blocks}, DType::f32, device);
  const bool real = device.kind != DeviceKind::meta;
  if (real) {
    const auto from = values.values<float>();
    const auto wrong = std::ranges::find_if(from, [](float x) { return !std::isfinite(x); });
    check(wrong == from.end(), ErrorKind::numeric, "nf4: value ", wrong - from.begin(),
          " is not finite");
    encode_values(from, block, out.packed.mutable_values<uint8_t>(),
                  absmax.mutable_values<float>());
  }
  if (scales == ScaleStorage::f32) {
    out.absmax = std::move(absmax);
    return out;
  }
  out.scale_codes = empty({blocks}, DType::u8, device);
  out.scale_scales =
      empty({(blocks + blocks_per_scale - 1) / blocks_per_scale}, DType::f32, device);
  if (real) {
    encode_scales(absmax.values<float>(), out);
  }
  return out;
}

float nf4_absmax(const Nf4Codes& codes, int64_t block) {
  const auto b = static_cast<size_t>(block);
  if (codes.absmax.defined()) {
    return codes.absmax.values<float>()[b];
  }
  return dynamic_map(true)[codes.scale_codes.values<uint8_t>()[b]] *
             codes.scale_scales.values<float>()[b / blocks_per_scale] +
         codes.offset;
}

void nf4_decode(const Nf4Codes& codes, int64_t begin, std::span<float> out) {
  const int64_t end = begin + static_cast<int64_t>(out.size());
  for (int64_t i = begin; i < end;) {
    const int64_t b = i / codes.block;
    const int64_t stop = std::min(end, (b + 1) * codes.block);
    const float scale = nf4_absmax(codes, b);
    std::array<float, 16> scaled;
    for (size_t k = 0; k < scaled.size(); ++k) {
      scaled[k] = nf4_codebook[k] * scale;
    }
    float* to = out.data() + (i - begin);
    if (i % 2 == 1) {
      *to++ = scaled[code_at(codes, i++)];
    }
    const uint8_t* from = codes.packed.values<uint8_t>().data() + i / 2;
    for (; i + 1 < stop; i += 2, ++from) {
      *to++ = scaled[*from >> 4];
      *to++ = scaled[*from & 15];
    }
    if (i < stop) {
      *to = scaled[code_at(codes, i++)];
    }
  }
}

}  // namespace ingot::quant
