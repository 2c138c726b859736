#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ingot/train/train.h"

namespace ingot {

// The first value of a step that is not finite.
struct NonFinite {
  std::string part;       // of the model: "layers.3"; empty outside its layers
  std::string op;         // "linear"; empty where a parameter held the value before the step
  std::string parameter;  // that the operation reads, or that holds the value
  bool backward = false;  // the operation's gradient, not its result
  double value = 0;
  Shape index;  // of the value, in a tensor of this shape
  Shape shape;
  int64_t sample = -1;  // −1: of no single one

  // "nan made by linear in layers.3 with layers.3.mlp.down.weight, at [0, 5, 2] of [4, 16, 32],
  // sample 25"
  std::string text() const;
};

// Runs the micro-batches of a step again, from `state` as it was before it, and looks at every
// parameter, then at every result and gradient in the order in which they are made. Absent where
// all are finite, as when sums of them overflow. −∞ from `where` is a mask and passes. Leaves no
// gradients.
std::optional<NonFinite> find_non_finite(TrainState state, Training& training);

// The index of the first NaN or infinity of x; absent where there is none, or where x has no
// floating-point type.
enum class Masks : uint8_t { count, pass };  // −∞
std::optional<int64_t> first_non_finite(const Tensor& x, Masks masks = Masks::count);

}  // namespace ingot
