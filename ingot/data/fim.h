#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/base/philox.h"

namespace ingot {

// Fill in the middle: a document is cut in three and its middle moved to the end, so that a
// left-to-right model learns to write between a prefix and a suffix (Bavarian et al. 2022,
// arXiv:2207.14255, section 3 and appendix D).
enum class FimOrder : uint8_t {
  psm,     // <PRE>prefix<SUF>suffix<MID>middle
  spm,     // <SUF>suffix<PRE>prefix<MID>middle
  spm_v2,  // <PRE><SUF>suffix<MID>prefix middle: the paper's variant 2
};

enum class FimSentinel : uint8_t { prefix, suffix, middle };

// A part of the result: a sentinel in front of a stretch of the document (which may be empty).
struct FimPart {
  FimSentinel sentinel;
  std::string text;
};

// `text` with its middle from character `begin` to `end` (of UTF-8 characters, not bytes). Throws
// Error(argument) unless 0 ≤ begin ≤ end ≤ the number of characters.
std::vector<FimPart> fim_parts(std::string_view text, int64_t begin, int64_t end, FimOrder order);

// Two cuts, uniform over the places between characters and at both ends.
std::pair<int64_t, int64_t> fim_cuts(int64_t characters, const RandomKey& key);

}  // namespace ingot
