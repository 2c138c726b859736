#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ingot/eval/eval_model.h"
#include "ingot/eval/statistics.h"

namespace ingot {

// A needle in a haystack: one sentence that states a number, at some depth of a long text about
// other things, and a question for it at the end (Kamradt 2023). The number is one of ten; the
// model answers with the likeliest, so that chance is a tenth, and "greedy" tells whether it would
// also have written it.
struct NeedleConfig {
  std::vector<int64_t> lengths;  // of the whole text in tokens; empty: quarters of the context
  int64_t depths = 5;            // evenly from the start to the end
  int64_t trials = 10;           // of each length and depth
  std::string filler;            // text to hide in; empty: sentences of Ingot's own
  uint64_t seed = 1;
};

struct NeedleScore {
  int64_t length = 0;
  double depth = 0;  // 0: at the start, 1: at the end
  Estimate accuracy, greedy;
};

// Throws Error(config) for a length beyond the context or too short for needle and question.
std::vector<NeedleScore> needle_scores(
    const EvalModel& model, const NeedleConfig& config,
    const std::function<bool(int64_t done, int64_t all)>& on_done = {});

}  // namespace ingot
