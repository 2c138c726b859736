#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/base/range.h"

namespace ingot {

// Every schedule is a function factor(t, T): what the peak learning rate is multiplied by at update
// t = 0, 1, …, T − 1 of a run of T updates. Published programs count differently by one, which is a
// schedule's `form`. With W updates of warm-up:
//   standard    t < W: (t+1)/W: the first update moves, and update W − 1 is at the peak
//   hf          t < W: t/W: the first update has rate 0 (Hugging Face transformers)
//   hf_shifted  t < W: (t+1)/W (its "cosine_warmup_with_min_lr")
//   nanogpt     t < W: (t+1)/(W+1)
// hf and hf_shifted do not hold the last value past T, where their programs do not either.

// The factor during warm-up, t < W. Goyal et al. 2017, "Accurate, large minibatch SGD",
// arXiv:1706.02677, section 2.2.
double warmup_factor(std::string_view form, int64_t t, int64_t warmup);

// (t − W) / (T − W): 0 at the end of warm-up, 1 at T, more past it.
double progress_after(int64_t warmup, int64_t t, int64_t total);

// 1 at x = 0, `floor` at x = 1, along half a cosine.
double cosine_between(double x, double floor);

}  // namespace ingot
