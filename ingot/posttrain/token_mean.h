#pragma once

#include "ingot/base/range.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// How losses of tokens [B, T], of which those of the mask count, become one. Papers differ, and the
// choice decides what length is worth:
//   token_mean      Σ m l / Σ m: every token weighs the same (DAPO, most implementations of GRPO)
//   sequence_mean   the mean over answers of each answer's mean (GRPO's paper, GSPO)
//   constant        Σ m l / (B · max_length): no weight depends on a length (Dr. GRPO)
// An answer without a token counts as 0; so does a batch without any.
struct TokenMean {
  std::string over = "token_mean";
  int64_t max_length = 0;

  template <class V>
  void describe(V& v) {
    v("over", over, one_of({"token_mean", "sequence_mean", "constant"}),
      "what the losses of tokens are averaged over");
    v("max_length", max_length, at_least(0),
      "with constant: the longest answer that may be written");
  }
};

// x, mask: [B, T] → []
Tensor mean_of_tokens(const Tensor& x, const Tensor& mask, const TokenMean& how = {});

}  // namespace ingot
