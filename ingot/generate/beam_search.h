#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/generate/tokens.h"
#include "ingot/models/decoder.h"

namespace ingot {

struct BeamConfig {
  int64_t width = 4;
  int64_t max_tokens = 128;
  double length_penalty = 1;
  std::vector<int64_t> stop_tokens;
  std::string kv = "model";

  template <class V>
  void describe(V& v) {
    v("width", width, at_least(1), "texts kept after each token");
    v("max_tokens", max_tokens, at_least(1), "tokens to write at most");
    v("length_penalty", length_penalty, at_least(0),
      "how much longer texts are favoured; 0: the likeliest text wins, however short");
    v("kv", kv, one_of({"model", "int8"}), "what keys and values are kept in");
    v("stop_tokens", stop_tokens, at_least(0), "ids after which a text ends");
  }
};

struct Hypothesis {
  Tokens tokens;               // with the stop token, where one ended it
  double log_probability = 0;  // Σ ln p of them
  double score = 0;
};

// The continuations of a prompt with the best scores found, best first, `width` of them where there
// are as many. A text of n tokens scores
//   Σ ln p / ((5 + n) / 6)^α     Wu et al. 2016, arXiv:1609.08144, equation 14, without coverage.
// Kept after each token are the `width` likeliest texts that go on; those that end are set aside,
// the best `width` of them. It stops when no text that goes on can still beat the worst set aside:
// its score can only fall where α is 0, and is at most that of its probability at max_tokens.
// Throws Error(argument) for an empty prompt or one that leaves no room in the context.
std::vector<Hypothesis> beam_search(const Decoder& model, const Tokens& prompt,
                                    const BeamConfig& config);

}  // namespace ingot
