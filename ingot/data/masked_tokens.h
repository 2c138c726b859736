#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ingot/base/philox.h"

namespace ingot {

// Masked language modelling (Devlin et al. 2019, arXiv:1810.04805, section 3.1): each token is
// chosen with probability `rate`; of the chosen ones the share `mask_share` is replaced by the mask
// token, `random_share` by a token drawn from the whole vocabulary, and the others stay. Chosen
// tokens are the labels; all others are ignored.
struct MaskedTokensConfig {
  int64_t mask_token = 0;
  int64_t vocabulary = 0;
  double rate = 0.15;
  double mask_share = 0.8;
  double random_share = 0.1;
};

struct MaskedTokens {
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;  // the token itself where it was chosen, else ignored_label
};

// A function of ids, key and config. `is_special(id)`: such tokens are never chosen. Throws
// Error(argument) for shares that are no shares, or a mask token outside the vocabulary.
MaskedTokens masked_tokens(std::span<const int64_t> ids, const RandomKey& key,
                           const MaskedTokensConfig& config,
                           const std::function<bool(int64_t)>& is_special = {});

}  // namespace ingot
