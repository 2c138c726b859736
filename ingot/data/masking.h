#pragma once

#include <cstdint>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/data/batch.h"

namespace ingot {

// How tokens are hidden from a masked language model.
struct MaskingConfig {
  double share = 0.15;
  double mask = 0.8;
  double random = 0.1;

  template <class V>
  void describe(V& v) {
    v("share", share, in(0, 1), "of a text's tokens that are to be named");
    v("mask", mask, in(0, 1), "of these that the mask token stands for");
    v("random", random, in(0, 1), "of these that another token stands for; the rest stay");
  }
};

// The tokens of a masked language model.
struct MaskingTokens {
  int64_t mask = 0;                // what stands for a hidden token
  int64_t vocab = 0;               // other tokens are drawn below this
  std::vector<int64_t> untouched;  // neither hidden nor drawn: padding, and what frames a text
};

// Of each row's n tokens that may be hidden, share · n are chosen (rounded up or down at random to
// keep the mean, one at least): labels hold them there and ignored_label elsewhere. Of the chosen,
// `mask` become the mask token, `random` a token drawn evenly, the others stay. Row r is sample
// `first` + r, and what becomes of it is a function of seed and sample. ids: [B, T] i64. Devlin et
// al. 2018, arXiv:1810.04805, section 3.1. Throws Error(config) where mask + random is above 1,
// Error(argument) where no token is left to draw.
Batch masked_batch(const Tensor& ids, const MaskingConfig& config, const MaskingTokens& tokens,
                   uint64_t seed, int64_t first);

}  // namespace ingot
