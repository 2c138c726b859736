#pragma once

#include <cstdint>
#include <string>

#include "ingot/base/describe.h"

namespace ingot {

// How a run watches its own numbers, and what it does where they are wrong.
struct NumbersConfig {
  std::string non_finite = "auto";
  int64_t skips = 10;
  double spike = 10;
  int64_t spike_steps = 3;
  int64_t spike_window = 64;
  std::string on_spike = "warn";
  int64_t rewinds = 3;
  int64_t recheck = 0;
  int64_t seal = 0;
  int64_t checksums = 0;
  int64_t diagnose = 0;

  template <class V>
  void describe(V& v) {
    v("non_finite", non_finite, one_of({"auto", "halt", "skip", "lower_scale"}),
      "when a loss or gradient is not finite: halt and name what made it, skip the batch, or (f16) "
      "lower the loss scale and repeat the step; auto: lower_scale in f16, else halt");
    v("skips", skips, at_least(0), "batches that may be skipped in a row before the run halts");
    v("spike", spike, at_least(0),
      "a loss is high when it is this many median absolute deviations above the median; 0: never");
    v("spike_steps", spike_steps, at_least(1), "high losses in a row that make a spike");
    v("spike_window", spike_window, at_least(8), "steps that the median is taken over");
    v("on_spike", on_spike, one_of({"warn", "rewind"}),
      "rewind: go back to the newest checkpoint before the spike and pass over the batches that "
      "made "
      "it");
    v("rewinds", rewinds, at_least(0), "how often a run may do so");
    v("recheck", recheck, at_least(0),
      "every so many steps the gradients are computed twice and compared bit for bit; 0: never");
    v("seal", seal, at_least(0),
      "after every so many steps weights and optimizer state are hashed, and compared before the "
      "next step; 0: never");
    v("checksums", checksums, at_least(0),
      "every so many steps the sums of each matrix product's rows are compared with those that its "
      "factors give; 0: never");
    v("diagnose", diagnose, at_least(0),
      "every so many steps gradients, updates, activations and attention logits are measured layer "
      "by layer, with warnings; 0: never");
  }
};

}  // namespace ingot
