#pragma once

#include <cstdint>
#include <vector>

#include "ingot/generate/generate.h"

namespace ingot {

struct SelfSpeculated {
  Tokens tokens;       // what was written
  int64_t rounds = 0;  // forwards of the model over a text with drafts
  double tokens_per_round() const {
    return rounds > 0 ? static_cast<double>(tokens.size()) / static_cast<double>(rounds) : 0;
  }
};

// The likeliest text of a model with heads for further tokens (config().mtp), which draft what the
// model then checks: in each round the heads propose a token each, one forward over text and
// proposals tells how many of them the model itself would have written, and one token more. The
// text is that of greedy decoding, whatever the heads propose. Gloeckle et al. 2024,
// arXiv:2404.19737, section 3.3. Ends after a stop token, at `tokens`, or where the context does.
// Texts are read whole each time, without cached keys: this shows what the heads are worth. Throws
// Error(config) for a model without such heads, Error(argument) for an empty prompt.
SelfSpeculated generate_self_speculatively(const Decoder& model, const Tokens& prompt,
                                           int64_t tokens,
                                           const std::vector<int64_t>& stop_tokens = {});

}  // namespace ingot
