#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdafactorConfig {
  static constexpr std::string_view name = "adafactor";
  static constexpr std::string_view paper = "Shazeer, Stern 2018, 1804.04235";
  static constexpr std::string_view use = "M + N instead of M N numbers of state for a matrix";
  std::string form = "hf";
  double eps1 = 1e-30;
  double eps2 = 1e-3;
  double clip_threshold = 1;
  double decay_rate = -0.8;
  double beta1 = 0;
  bool scale_parameter = false;
  bool relative_step = false;
  bool warmup_init = false;
  double weight_decay = 0;

  template <class V>
  void describe(V& v) {
    v("form", form, one_of({"hf", "torch"}),
      "conventions of Hugging Face and fairseq, or of torch");
    v("eps1", eps1, at_least(0), "guards squared gradients (hf) or their estimate (torch)");
    v("eps2", eps2, at_least(0), "least size of a parameter, where steps are relative to it");
    v("clip_threshold", clip_threshold, above(0), "largest root mean square of an update");
    v("decay_rate", decay_rate, in(-1, 0), "beta2 is 1 - t^decay_rate");
    v("beta1", beta1, half_open(0, 1), "decay of an average of updates; 0: none (hf)");
    v("scale_parameter", scale_parameter,
      "steps relative to the size of the parameter (hf; torch always does)");
    v("relative_step", relative_step, "the rate is lr times min(0.01, 1/sqrt(t)) (hf)");
    v("warmup_init", warmup_init, "with relative_step: lr times min(1e-6 t, 1/sqrt(t)) (hf)");
    v("weight_decay", weight_decay, at_least(0), "times the rate: share lost per step");
  }
};

// Throws Error(config) for warmup_init without relative_step, and for what the form torch lacks.
std::unique_ptr<const Rule> make_rule(const AdafactorConfig& config);

}  // namespace ingot
