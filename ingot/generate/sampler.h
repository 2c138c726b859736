#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/base/philox.h"
#include "ingot/base/range.h"

namespace ingot {

// How the next token is drawn from the logits. The filters apply in the order of the fields, each
// to the distribution the one before left, renormalised.
struct SamplingConfig {
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;

  template <class V>
  void describe(V& v) {
    v("temperature", temperature, at_least(0),
      "logits are divided by it; 0 takes the likeliest token each time");
    v("top_k", top_k, at_least(0), "keep the k likeliest tokens; 0: all");
    v("top_p", top_p, in(0, 1), "keep the fewest tokens that have this probability together");
    v("min_p", min_p, in(0, 1), "keep tokens at least this likely relative to the likeliest");
    v("typical_p", typical_p, in(0, 1),
      "keep the tokens of most usual surprise that have this probability together; 1: all");
  }
};

// The distribution the next token is drawn from: V probabilities, 0 for what the filters removed.
// Of equally likely tokens the earlier stays. Throws Error(numeric) if a logit is not a number or
// none is finite. Top-p: Holtzman et al. 2020, arXiv:1904.09751; min-p: Nguyen et al. 2024,
// arXiv:2407.01082; typical: those whose −ln p lies closest to the entropy, Meister et al. 2023,
// arXiv:2202.00666, equation 5.
std::vector<double> token_probabilities(std::span<const float> logits,
                                        const SamplingConfig& config);

// The token at which the cumulative probability passes `u` in [0, 1).
int64_t token_at(std::span<const double> probabilities, double u);

// The likeliest token, the first of equals.
int64_t likeliest(std::span<const float> logits);

}  // namespace ingot
