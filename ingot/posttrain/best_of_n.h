#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

// Choosing among several answers to each prompt by their scores. Scores lie prompt after prompt, n
// each.

// The best answer of each prompt; the first of equals. Stiennon et al. 2020, arXiv:2009.01325.
// Throws Error(argument) where the scores are no whole groups or one is NaN.
std::vector<int64_t> best_of_n(std::span<const double> scores, int64_t n);

// Rejection sampling: the answers to keep for fine-tuning, as indices into scores. Those of at
// least `least`, at most `most` of each prompt (0: all), the best first, each different answer
// once. `answers`: anything that is equal for equal answers, one a score. Dong et al. 2023,
// arXiv:2304.06767 (RAFT, with most = 1).
struct Rejection {
  double least = 0;
  int64_t most = 0;
};
std::vector<int64_t> accepted(std::span<const double> scores, std::span<const uint64_t> answers,
                              int64_t n, const Rejection& rule);

}  // namespace ingot
