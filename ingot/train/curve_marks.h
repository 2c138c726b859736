#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

// The running mean of a curve: m ← w·m + (1 − w)·x, divided by 1 − wᵗ, t the values so far; values
// that are not finite leave it as it is. 0 ≤ w < 1, and 0 is the curve itself.
std::vector<double> smoothed(std::span<const double> losses, double weight);

// What a reader of a loss curve looks for; indices into the curve.
struct CurveMarks {
  struct Stretch {
    size_t begin = 0, end = 0;  // [begin, end)
  };
  // Where the smoothed loss keeps within 2 % of its whole fall, over a fifth of the curve or more.
  std::vector<Stretch> plateaus;
  // Values above the median of the 20 before by more than 6 of their median distances from it and
  // by 5 % of it; one for values that follow one another.
  std::vector<size_t> spikes;
  // From where it goes wrong: the first of the values that are not finite where none is after
  // them, or the least of a smoothed loss that has lost half of its fall again at the end. The
  // length of the curve: it does not.
  size_t diverges = 0;
};

CurveMarks marks_of(std::span<const double> losses, double weight = 0.9);

}  // namespace ingot
