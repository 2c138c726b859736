#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ingot/generate/generate.h"

namespace ingot {

// One of several answers to a prompt.
struct Sampled {
  Tokens tokens;
  double log_probability = 0;  // Σ ln p of its tokens under the model alone
  double score = 0;
};

// How good an answer is; the more the better.
using Scorer = std::function<double(const Sampled&)>;
double mean_log_probability(const Sampled& answer);  // ln p a token

// n answers, drawn with choices 0 … n − 1, each scored; they share the reading of the prompt.
std::vector<Sampled> sampled_answers(const Decoder& model, const Tokens& prompt,
                                     const GenerateConfig& config, int64_t n, const Scorer& scorer,
                                     const std::string& kv = "model");
// Which has the highest score, of equals the earliest: best-of-n sampling, Stiennon et al. 2020,
// arXiv:2009.01325, appendix G.3. Throws Error(argument) for none.
size_t best_of(std::span<const Sampled> answers);
// The most that choosing the best of n moves the distribution away from the model's:
// KL ≤ ln n − (n − 1)/n nats, the same appendix (an equality where no two answers score alike,
// Beirami et al. 2024, arXiv:2401.01879).
double best_of_divergence(int64_t n);

// The answer given most often, of equally frequent ones the earliest; answers that say nothing
// (nullopt) do not count. Self-consistency: Wang et al. 2022, arXiv:2203.11171.
struct Vote {
  std::string answer;
  int64_t votes = 0;
  int64_t counted = 0;  // answers that said something
};
std::optional<Vote> majority(std::span<const std::optional<std::string>> answers);

}  // namespace ingot
