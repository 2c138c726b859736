#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ingot/generate/logit_rules.h"
#include "ingot/generate/sampler.h"
#include "ingot/models/decoder.h"

namespace ingot {

struct GenerateConfig {
  int64_t max_tokens = 128;
  int64_t seed = 0;
  std::vector<int64_t> stop_tokens;
  SamplingConfig sampling;
  LogitRules rules;

  template <class V>
  void describe(V& v) {
    v("max_tokens", max_tokens, at_least(0), "tokens to write at most");
    v("seed", seed, at_least(0), "of the draws");
    v("stop_tokens", stop_tokens, at_least(0), "ids after which a text ends");
    v.group("sampling", sampling, "how tokens are drawn");
    v.group("rules", rules, "what is changed in the logits before");
  }
};

// The token after a text of `place` tokens, drawn from logits that the rules were applied to.
// Depends on the seed, the place and `choice` (which of several answers to one prompt) besides.
int64_t drawn_token(std::span<const float> logits, const GenerateConfig& config, int64_t place,
                    int64_t choice);
bool is_stop(int64_t token, const GenerateConfig& config);

// Told every new token as it is drawn; false ends that row.
using OnToken = std::function<bool(int64_t row, int64_t token)>;

// Continues each prompt until a stop token (which is the last one returned) or max_tokens. Returns
// the new tokens of each row. The tokens of a row depend on the seed, the row's number and its
// prompt alone, not on the other rows. A text that outgrows the model's context goes on from its
// last half, read again.
std::vector<Tokens> generate(const Decoder& model, const std::vector<Tokens>& prompts,
                             const GenerateConfig& config, const OnToken& on_token = {});

}  // namespace ingot
