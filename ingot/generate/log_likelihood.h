#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ingot/generate/tokens.h"
#include "ingot/models/decoder.h"

namespace ingot {

// A continuation whose probability is asked for, behind a context of at least one token.
struct Continuation {
  Tokens context;
  Tokens tokens;  // at least one
};

struct Likelihood {
  double log_probability = 0;  // Σ ln p(token | everything before it), natural logarithm
  bool greedy = true;          // each token is the likeliest one
};

// One for each continuation, in their order. The computation runs over batches of at most
// `batch_tokens` tokens (one continuation at least), longest first; of a text longer than the
// model's context + 1 the end is kept. Continuations of the same texts but for their last token are
// computed once. The logits of a few hundred tokens exist at a time. Throws Error(argument) for an
// empty context or continuation, Error(numeric) where a probability is not finite. `on_done` is
// called with the number of continuations done; false ends it, and the rest are 0.
std::vector<Likelihood> log_likelihoods(const Decoder& model, std::span<const Continuation> all,
                                        int64_t batch_tokens = 4096,
                                        const std::function<bool(int64_t done)>& on_done = {});

// Σ ln p of every token of a text but those of its first `known` ones (at least one), in windows of
// the model's context: each token is predicted once, with at least `overlap` tokens before it where
// there are so many.
double text_log_probability(const Decoder& model, std::span<const int64_t> tokens,
                            int64_t known = 1, int64_t overlap = 1);

}  // namespace ingot
