#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ingot/generate/decoding.h"
#include "ingot/generate/sampler.h"

namespace ingot {

struct GenerateConfig {
  int64_t max_tokens = 128;
  int64_t seed = 0;
  std::vector<int64_t> stop_tokens;
  SamplingConfig sampling;

  template <class V>
  void describe(V& v) {
    v("max_tokens", max_tokens, at_least(0), "tokens to write at most");
    v("seed", seed, at_least(0), "of the draws");
    v("stop_tokens", stop_tokens, at_least(0), "ids after which a text ends");
    v.group("sampling", sampling, "how tokens are drawn");
  }
};

// Told every new token as it is drawn; false ends that row.
using OnToken = std::function<bool(int64_t row, int64_t token)>;

// Continues each prompt until a stop token (which is the last one returned) or max_tokens. Returns
// the new tokens of each row. The draw of a token depends on the seed, the row and the token's
// place in its text alone.
std::vector<Tokens> generate(const Decoder& model, const std::vector<Tokens>& prompts,
                             const GenerateConfig& config, const OnToken& on_token = {});

}  // namespace ingot
