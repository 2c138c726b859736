#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ingot/train/objective.h"

namespace ingot {

// Supervised fine-tuning: cross-entropy on the learnt tokens. How the losses of tokens become one
// number matters where rows count different numbers of tokens:
//   token_mean                Σ loss / number of learnt tokens, over the whole step. Training takes
//                             this: it does not depend on how a step is divided
//   sequence_mean             the mean over sequences of each one's token mean: a token of a short
//   answer
//                             weighs more
//   mean_of_microbatch_means  the mean of each micro-batch's token mean: what a loop that averages
//                             before it accumulates does by mistake; it depends on the division
enum class SftMean : uint8_t { token_mean, sequence_mean, mean_of_microbatch_means };
SftMean sft_mean_named(const std::string& name);  // throws Error(config)

// One micro-batch's part. losses, mask (1 where learnt): [B, T] → a sum and a count; Σ sum / Σ
// count over the step is the mean (under mean_of_microbatch_means the count is 1).
Loss sft_loss(const Tensor& losses, const Tensor& mask, SftMean mean);

// The step's loss of its parts: Σ sum / Σ count.
Tensor mean_of(std::span<const Loss> parts);

}  // namespace ingot
