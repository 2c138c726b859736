#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/generate/tokens.h"

namespace ingot {

// What is changed in the logits before a token is drawn from them, in the order of the fields.
struct LogitRules {
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::map<int64_t, double> bias;  // added to the logits of these tokens
  std::vector<Tokens> banned;      // sequences of tokens that are never completed

  template <class V>
  void describe(V& v) {
    v("repetition_penalty", repetition_penalty, above(0),
      "logits of tokens in the text so far are divided by it where positive, else multiplied; 1: "
      "off");
    v("presence_penalty", presence_penalty, any(),
      "taken from the logits of tokens that were written before");
    v("frequency_penalty", frequency_penalty, any(),
      "taken from the logits of written tokens once for each time");
  }
  bool change_nothing() const {
    return repetition_penalty == 1 && presence_penalty == 0 && frequency_penalty == 0 &&
           bias.empty() && banned.empty();
  }
};

// Applies them for the token after `text`, of which all from `prompt` tokens on was written. With
// n_i the times that token i was written:
//   l_i ← l_i / θ if l_i > 0, else l_i θ    for tokens in the text (Keskar et al. 2019,
//                                            arXiv:1909.05858, section 4.1, with the sign's case)
//   l_i ← l_i − presence [n_i > 0] − frequency n_i     (OpenAI's API reference)
//   l_i ← l_i + bias_i
//   l_i ← −∞                                for the last token of a banned sequence whose other
//                                            tokens end the text
// Throws Error(argument) for a token beyond the logits.
void apply(const LogitRules& rules, std::span<const int64_t> text, int64_t prompt,
           std::span<float> logits);

}  // namespace ingot
