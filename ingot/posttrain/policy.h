#pragma once

#include <functional>

#include "ingot/posttrain/sequence_logprobs.h"
#include "ingot/train/objective.h"

namespace ingot {

// A model as objectives over answers see it.
struct Policy {
  std::function<Tensor(const Batch&)> hidden;  // [B, T, D], after the last norm
  std::function<Tensor()> head;                // [V, D]
  double softcap = 0;                          // of the logits
};

// Σ log p of every row's answer, with history where the policy is trained.
SequenceLogprobs logprobs_of(const Policy& policy, const Batch& batch);

// The same by the reference model, without history.
using Reference = std::function<SequenceLogprobs(const Batch&)>;

}  // namespace ingot
