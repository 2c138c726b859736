#pragma once

#include <cstdint>
#include <string>

#include "ingot/optim/schedule_wsd.h"

namespace ingot {

// A time by which a run is to be over: where a WSD decay begins so that it ends in time. All times
// are seconds of the system's clock since 1970.

// "06:00" or "06:00:30": the next time that a clock on this machine shows it; "2026-12-01 06:00"
// (or with T, or with seconds); "slurm": the end of the job, as $SLURM_JOB_END_TIME has it. Throws
// Error(config) for other words, for a date that is over, and for "slurm" outside a job.
double deadline_of(const std::string& text, double now);

// Steps that the decay takes when it begins after `step` steps: `decay`, or the share
// `decay_fraction` of what the run then is.
int64_t decay_steps(const WsdSchedule& schedule, int64_t step);

class Deadline {
 public:
  // The run goes on from `step` at `now`.
  Deadline(double ends, double now, int64_t step)
      : ends_(ends), began_(now), last_(now), first_(step) {}

  // Told before each step: `step` are done. Whether the decay must begin now: whether
  //   (steps of the decay) · (mean time of a step so far, saving and measuring included)
  //   + the longest time between two steps so far (the end saves and measures once more)
  //   + 2 % of the time from the start to the end
  // is what is left, or more.
  bool due(int64_t step, double now, int64_t decay);

 private:
  double ends_;
  double began_;
  double last_;
  double longest_ = 0;
  int64_t first_;
};

}  // namespace ingot
