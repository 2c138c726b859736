#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/generate/generate.h"

namespace ingot {

// Speculative decoding: a small draft model proposes tokens, the model reads all of them at once
// and keeps those that it might have drawn itself. Leviathan, Kalman and Matias 2023,
// arXiv:2211.17192, algorithm 1. q_i is the draft's distribution of proposal x_i, p_i the model's
// in the same place:
//   x_i is kept with probability min(1, p_i(x_i) / q_i(x_i));
//   in the place of the first that is not, a token is drawn from p_i − q_i, negative parts left
//   out; where all are kept, one more is drawn from p_{γ+1}.
// What is written is distributed as if drawn from p alone, whatever q is (appendix A.1).
struct Accepted {
  int64_t kept = 0;  // proposals
  int64_t next = 0;  // the token after them
};

// `p` has one distribution more than `q`. `keep` and `draw` are uniform numbers in [0, 1), of each
// place. Throws Error(argument) where the counts differ.
using Distributions = std::span<const std::vector<double>>;
Accepted judge(std::span<const int64_t> proposals, Distributions q, Distributions p,
               std::span<const double> keep, std::span<const double> draw);

struct SpeculativeAnswer {
  Tokens tokens;
  int64_t proposed = 0, kept = 0;  // tokens of the draft
  int64_t readings = 0;            // of the model, the prompt's left out
};

// Continues a prompt, `draft_tokens` proposals at a time, until a stop token (the last one
// returned), max_tokens or the shorter of both contexts. At temperature 0 the tokens are those of
// generate(). Throws Error(argument) where the vocabularies differ, or as generate() does.
SpeculativeAnswer generate_speculatively(const Decoder& model, const Decoder& draft,
                                         const Tokens& prompt, const GenerateConfig& config,
                                         int64_t draft_tokens, const OnToken& on_token = {},
                                         const std::string& kv = "model");

}  // namespace ingot
