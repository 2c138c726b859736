#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/tokenizer_spec.h"

namespace ingot {

struct UnigramTraining {
  int64_t vocabulary = 8000;         // tokens in all: unknown, special ones, 256 bytes, pieces
  double character_coverage = 1;     // share of the text's characters that get tokens of their own
  std::vector<std::string> special;  // found in text only when asked for
};

// A Unigram tokenizer with byte fallback, trained by the SentencePiece library (Kudo 2018, arXiv
// 1804.10959): no normalisation but a '▁' in front and for spaces, so that decoding gives the text
// back. The library learns from lines; lines are divided at tabs, which it reserves, and after
// 100,000 bytes. Throws Error(format) with the library's message where it fails, as on a vocabulary
// that the text is too small for.
TokenizerSpec train_unigram(const std::vector<std::string_view>& texts,
                            const UnigramTraining& settings);

}  // namespace ingot
