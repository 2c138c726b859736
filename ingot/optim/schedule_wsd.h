#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Warm-up, stable, decay. Hu et al. 2024, "MiniCPM", arXiv:2404.06395, section 4; the 1 − √ decay:
// Hägele et al. 2024, "Scaling laws and compute-optimal training beyond fixed training durations",
// arXiv:2405.18392. The decay is the last part of the run, so a longer run shares the stable part.
struct WsdSchedule {
  static constexpr std::string_view name = "wsd";
  int64_t warmup = 0;
  int64_t decay = 0;
  double decay_fraction = 0.1;
  std::string decay_shape = "linear";
  int64_t half_life = 1;
  double floor = 0;
  std::string warmup_shape = "linear";
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("decay", decay, at_least(0), "updates of falling rate at the end; 0: use decay_fraction");
    v("decay_fraction", decay_fraction, in(0, 1), "share of the run that decays, where decay is 0");
    v("decay_shape", decay_shape, one_of({"linear", "1-sqrt", "cosine", "exponential"}),
      "how the rate falls");
    v("half_life", half_life, at_least(1), "updates that halve the rate of the exponential decay");
    v("floor", floor, in(0, 1), "last rate, as a share of the peak");
    v("warmup_shape", warmup_shape, one_of({"linear", "cosine"}), "how the rate rises");
    v("form", form, one_of({"standard", "hf"}), "how updates are counted");
  }

  // The first update that decays: T − decay.
  int64_t decay_start(int64_t total) const;

  // Decay from S = decay_start to T, p = (t−S)/(T−S): 1−p | 1−√p | (1 + cos πp)/2, between peak and
  // floor; the floor from T on. exponential: 0.5^((t+1−S)/half_life), not below the floor and
  // without an end. hf lifts the warm-up by the floor too: floor + (1−floor)·t/W.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
