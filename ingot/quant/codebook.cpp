#include "ingot/quant/codebook.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/kernels/optim_8bit.h"

namespace ingot::quant {

std::span<const float> dynamic_map(bool is_signed) {
  return {kernels::dynamic_map(is_signed), 256};
}

size_t nearest_entry(std::span<const float> map, float x) {
  const auto above = static_cast<size_t>(std::lower_bound(map.begin(), map.end(), x) - map.begin());
  if (above == 0 || above == map.size()) {
    return above == 0 ? 0 : map.size() - 1;
  }
  return static_cast<double>(x) - map[above - 1] <= static_cast<double>(map[above]) - x ? above - 1
                                                                                        : above;
}

CodebookCodes codebook_codes(std::span<const float> values, std::span<const float> map,
                             int64_t block) {
  check(block > 0, ErrorKind::argument, "codebook: blocks must have at least 1 value: got ", block);
  const auto wrong = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  check(wrong == values.end(), ErrorKind::numeric, "codebook: value ", wrong - values.begin(),
        " is not finite");
  CodebookCodes out{block, {}, {}};
  out.codes.reserve(values.size());
  const auto length = static_cast<size_t>(block);
  for (size_t begin = 0; begin < values.size(); begin += length) {
    const auto group = values.subspan(begin, std::min(length, values.size() - begin));
    float most = 0;
    for (const float x : group) {
      most = std::max(most, std::abs(x));
    }
    out.absmax.push_back(most);
    for (const float x : group) {
      out.codes.push_back(static_cast<uint8_t>(nearest_entry(map, most > 0 ? x / most : 0.0F)));
    }
  }
  return out;
}

std::vector<float> dequantized(const CodebookCodes& codes, std::span<const float> map) {
  std::vector<float> out;
  out.reserve(codes.codes.size());
  for (size_t i = 0; i < codes.codes.size(); ++i) {
    out.push_back(map[codes.codes[i]] * codes.absmax[i / static_cast<size_t>(codes.block)]);
  }
  return out;
}

}  // namespace ingot::quant
