#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Piecewise constant: multiplied by a factor at given updates, or every so many.
struct StepsSchedule {
  static constexpr std::string_view name = "steps";
  int64_t warmup = 0;
  double gamma = 0.1;
  int64_t every = 0;
  std::vector<int64_t> milestones;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("gamma", gamma, in(0, 1), "what each step multiplies the rate by");
    v("every", every, at_least(0), "updates between steps; 1: exponential decay; 0: none");
    v("milestones", milestones, at_least(0), "further updates from which a step applies");
    v("form", form, one_of({"standard", "hf", "nanogpt"}), "how updates are counted");
  }

  // gamma^n, n = ⌊t/every⌋ + the number of milestones ≤ t.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
