#pragma once

#include <map>
#include <string>

#include "ingot/posttrain/sequence_logprobs.h"

namespace ingot {

// What a model gives to the answers of P pairs.
struct PairLogprobs {
  SequenceLogprobs chosen;    // [P]
  SequenceLogprobs rejected;  // [P]
};

// What a preference loss makes of P pairs.
struct PairLosses {
  Tensor losses;            // [P], with history
  Tensor chosen_rewards;    // [P], the rewards that the loss compares, without history
  Tensor rejected_rewards;  // [P]
};

// The first P of 2 P rows are chosen answers, the others those rejected, in the same order.
PairLogprobs pairs_of(const SequenceLogprobs& rows);
// Without history.
PairLogprobs detached(const PairLogprobs& pairs);

// What everyone watches, as sums over the pairs: chosen_reward, rejected_reward, margin (of the
// two), accuracy (share of pairs whose chosen answer has the larger reward; half for equal ones),
// chosen_logp, rejected_logp (of the policy, summed over each answer). Nothing on the meta device.
std::map<std::string, double> pair_metrics(const PairLosses& found, const PairLogprobs& policy);

}  // namespace ingot
