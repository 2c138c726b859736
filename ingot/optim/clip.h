#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Clipping of gradients. Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent
// neural networks", arXiv:1211.5063, section 3.2. All of it works on the gradients that backward()
// left in the parameters; parameters without one count as zero.

enum class NormKind : uint8_t { l2, largest };  // √Σ g², max |g|

// The norm over all gradients together: added in f64 in a fixed order, so equal on every run and
// for any number of threads. Not finite if any gradient is not. On the meta device: 0.
double gradient_norm(const TensorDict& parameters, NormKind kind = NormKind::l2);

// PyTorch adds 1e-6 to the norm, TensorFlow does not.
enum class ClipForm : uint8_t { torch, exact };

// What gradients of this norm are to be multiplied by: min(1, max_norm / norm), torch:
// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (no clipping). Give it to Optimizer::step
// as part of its scale: the gradients themselves need no pass of their own. Throws Error(numeric)
// for a norm that is not finite: the caller decides whether to halt or to skip the step.
double clip_factor(double norm, double max_norm, ClipForm form = ClipForm::torch);

// Names of the parameters whose gradients hold NaN or infinity, in order.
std::vector<std::string> non_finite_gradients(const TensorDict& parameters);

// Writes the gradients: g ← factor·g.
void scale_gradients(const TensorDict& parameters, double factor);
// g ← min(max(g, −limit), limit), element by element; NaN stays.
void clip_by_value(const TensorDict& parameters, double limit);

}  // namespace ingot
