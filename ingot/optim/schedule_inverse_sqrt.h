#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Warm-up, then falling as 1/√t, without an end. Vaswani et al. 2017, "Attention is all you need",
// arXiv:1706.03762, equation 3; with a time scale: Zhai et al. 2022, "Scaling vision transformers",
// arXiv:2106.04560.
struct InverseSqrtSchedule {
  static constexpr std::string_view name = "inverse_sqrt";
  int64_t warmup = 0;
  int64_t timescale = 0;
  int64_t width = 512;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("timescale", timescale, at_least(0), "updates after which 1/sqrt(2) is left; 0: the warm-up");
    v("width", width, at_least(1), "model width, which the form noam divides by the root of");
    v("form", form, one_of({"standard", "hf", "nanogpt", "noam"}), "how updates are counted");
  }

  // √(scale / (t − W + scale)). noam: width^−½ · min(s^−½, s·W^−3/2), s = t+1: the whole rate, so
  // that the learning rate is a factor of the paper's.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
