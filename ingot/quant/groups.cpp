#include "ingot/quant/groups.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/kernels/cpu/parallel.h"

namespace ingot::quant {
namespace {

struct Fit {
  float scale;
  int32_t zero;
};

Fit fit_of(std::span<const float> x, const GroupGrid& grid) {
  const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
  const float a = std::min(*least, 0.0F);
  const float b = std::max(*greatest, 0.0F);
  const float most = std::max(-a, b);
  const auto steps = static_cast<float>(grid.high - grid.low);
  if (most == 0) {
    return {1, grid.rule == GroupRule::gptq ? (grid.high + grid.low + 1) / 2 : 0};
  }
  switch (grid.rule) {
    case GroupRule::asymmetric: {
      const float scale = (b - a) / steps;
      const auto zero = static_cast<int32_t>(std::nearbyint(a / scale));
      return {scale, std::clamp(grid.low - zero, grid.low, grid.high)};
    }
    case GroupRule::symmetric: return {most / static_cast<float>(grid.high), 0};
    case GroupRule::centred: return {most / (steps / 2), 0};
    case GroupRule::gptq: return {(a < 0 ? 2 * most : b) / steps, (grid.high + grid.low + 1) / 2};
  }
  throw Error(ErrorKind::internal, "quantize_groups: a rule was forgotten");
}

}  // namespace

GroupCodes quantize_groups(std::span<const float> values, int64_t group, const GroupGrid& grid) {
  const auto count = static_cast<int64_t>(values.size());
  check(group > 0 && count % group == 0, ErrorKind::shape, "quantize_groups: ", count,
        " values are no whole groups of ", group);
  const auto wrong =
      std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  check(wrong == values.end(), ErrorKind::numeric, "quantize_groups: value ",
        wrong - values.begin(), " is not finite");
  GroupCodes out{group, std::vector<int32_t>(values.size()),
                 std::vector<float>(static_cast<size_t>(count / group)),
                 std::vector<int32_t>(static_cast<size_t>(count / group))};
  kernels::parallel_for(count / group, 64, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const auto at = static_cast<size_t>(g * group);
      const auto x = values.subspan(at, static_cast<size_t>(group));
      const Fit fit = fit_of(x, grid);
      out.scales[static_cast<size_t>(g)] = fit.scale;
      out.zeros[static_cast<size_t>(g)] = fit.zero;
      for (size_t i = 0; i < x.size(); ++i) {
        const auto code = static_cast<int32_t>(std::nearbyint(x[i] / fit.scale)) + fit.zero;
        out.codes[at + i] = std::clamp(code, grid.low, grid.high);
      }
    }
  });
  return out;
}

std::vector<float> dequantized(const GroupCodes& codes) {
  std::vector<float> out(codes.codes.size());
  const auto group = static_cast<size_t>(codes.group);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = codes.scales[i / group] * static_cast<float>(codes.codes[i] - codes.zeros[i / group]);
  }
  return out;
}

std::vector<uint8_t> packed_pairs(std::span<const int32_t> codes) {
  check(codes.size() % 2 == 0, ErrorKind::shape,
        "packed_pairs: an odd number of codes: ", codes.size());
  std::vector<uint8_t> out(codes.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    const int32_t first = codes[2 * i];
    const int32_t second = codes[2 * i + 1];
    check(first >= 0 && first < 16 && second >= 0 && second < 16, ErrorKind::argument,
          "packed_pairs: codes must be 0 to 15: got ", first, " and ", second);
    out[i] = static_cast<uint8_t>(first | second << 4);
  }
  return out;
}

}  // namespace ingot::quant
