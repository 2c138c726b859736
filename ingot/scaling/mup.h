#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/base/describe.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Maximal update parametrization: how initial weights, multipliers and learning rates follow the
// width of a model, so that what is learnt in a step, and with it the best learning rate, does not
// depend on the width. Yang et al. 2022, "Tensor Programs V", arXiv:2203.03466, tables 3 and 8.
// Everything is relative to a base width, at which it is the usual parametrization; all widths of
// the model (of heads together, of the feed-forward layer) are taken to grow in proportion.

// What a parameter is to the width: an embedding [V, D] has one side that grows, a vector none but
// its length, a hidden matrix both sides, the output map [V, D] one, which is summed over.
enum class MupPart : uint8_t { embedding, vector, hidden, output };
// Which of two ways to write the same: `table8` multiplies the output by 1/m and lets its rate be,
// `table3` puts both into its initial weights and its rate.
enum class MupForm : uint8_t { table3, table8 };
// Updates that do not scale with the gradient (Adam, and all that divide by its size or take its
// sign), and those that do.
enum class MupRule : uint8_t { adam, sgd };

struct MupNumbers {
  double deviation = 1;  // of the initial weights
  double forward = 1;    // multiplies what the map gives
  double rate = 1;       // of learning
  double decay = 1;      // of weights, where rate · decay is what is lost in a step
};
// m = width / base width
MupNumbers mup_numbers(MupForm form, MupRule rule, MupPart part, double m);

// What scores are multiplied by: √(base head width) / C, at the base 1/√C.
double mup_attention_scale(int64_t head_width, int64_t base_head_width);

// What a parameter of a decoder is, by its name and rank.
MupPart mup_part(std::string_view name, int64_t rank);

// The keys of a recipe's [mup], which are table3's.
struct MupConfig {
  int64_t base_width = 0;
  int64_t base_head_dim = 0;

  template <class V>
  void describe(V& v) {
    v("base_width", base_width, at_least(0),
      "width at which the parametrization is the usual one; initial weights and rates follow "
      "model.width from there; 0: off");
    v("base_head_dim", base_head_dim, at_least(0),
      "head width at which scores are scaled as usual; 0: heads have one width at all widths");
  }
  bool on() const { return base_width > 0; }
};

// The rule's way with gradients; Error(config) for a rule that muP's tables say nothing of.
MupRule mup_rule(std::string_view optimizer);

// Multiplies initial weights, drawn with one deviation for all matrices (of `scheme`: gpt2, normal,
// or another whose deviation is 1/√fan-in already), in place.
void scale_initial(TensorDict& values, const MupConfig& config, int64_t width,
                   std::string_view scheme);

// The group rule of a parameter, as optim.groups would have it; empty where nothing changes.
std::string mup_group(std::string_view name, int64_t rank, const MupConfig& config, int64_t width,
                      MupRule rule);

}  // namespace ingot
