#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::quant {

// Round-to-nearest in groups of neighbouring values: x ≈ scale · (code − zero), one scale and one
// zero a group. A group may be a tensor, a row of it, or a piece of a row.

// How scale and zero follow from a group's least value a and greatest value b, for codes low …
// high:
//   asymmetric  a' = min(a, 0), b' = max(b, 0): scale = (b' − a') / (high − low),
//               zero = low − round(a' / scale)        (Jacob et al. 2018, arXiv:1712.05877)
//   symmetric   scale = max|x| / high, zero 0: high is the largest code, low = −high
//   centred     scale = max|x| / ((high − low) / 2), zero 0: the largest magnitude lies between the
//               outermost codes                       (as torch.ao's symmetric observers)
//   gptq        the same scale with zero = (high + low + 1) / 2, where there are values below 0;
//   otherwise
//               scale = b / (high − low)              (Frantar et al. 2022, arXiv:2210.17323; its
//               quant.py)
enum class GroupRule : uint8_t { asymmetric, symmetric, centred, gptq };

struct GroupGrid {
  GroupRule rule = GroupRule::asymmetric;
  int32_t low = -128;
  int32_t high = 127;
};

struct GroupCodes {
  int64_t group = 0;           // values under one scale
  std::vector<int32_t> codes;  // low … high
  std::vector<float> scales;   // one a group
  std::vector<int32_t> zeros;
};

// Halves round to even. Groups of zeros alone have scale 1. Throws Error(shape) where the values
// are no whole groups, Error(numeric) with the index of a value that is not finite.
GroupCodes quantize_groups(std::span<const float> values, int64_t group, const GroupGrid& grid);

std::vector<float> dequantized(const GroupCodes& codes);

// Two codes of four bits a byte, the first in the lower half. `codes` are 0 … 15 and an even
// number.
std::vector<uint8_t> packed_pairs(std::span<const int32_t> codes);

}  // namespace ingot::quant
