#pragma once

#include "ingot/posttrain/cpo.h"
#include "ingot/posttrain/dpo.h"
#include "ingot/posttrain/kto.h"
#include "ingot/posttrain/orpo.h"
#include "ingot/posttrain/policy.h"
#include "ingot/posttrain/reward.h"
#include "ingot/posttrain/simpo.h"

namespace ingot {

// Objectives over batches of answers. Of pairs the first half of the rows are chosen answers, the
// second half those rejected, in the same order; the loss is a sum over pairs, its count their
// number. Metrics are those of pair_metrics; with a reference also
//   kl   the mean of log π/ρ over both answers: what KL(policy ‖ reference) is as far as answers
//   are
//        such as the policy writes itself
Objective dpo_objective(Policy policy, Reference reference, const DpoConfig& config);
Objective orpo_objective(Policy policy, const OrpoConfig& config);
Objective simpo_objective(Policy policy, const SimpoConfig& config);
Objective cpo_objective(Policy policy, const CpoConfig& config);

// The first half of the rows are answers, good or bad as columns["desirable"] [B/2] bool says, the
// second half the same prompts with answers that belong to others, from which the reference point
// is estimated in every micro-batch. Sum over and count of answers. Metrics: chosen_reward and
// rejected_reward (means over good and bad answers of the micro-batch, times its answers), kl (the
// reference point), accuracy (share of answers on the right side of it).
Objective kto_objective(Policy policy, Reference reference, const KtoConfig& config);

// Scores of whole answers, w·h of each row's last token: [B] f32.
Tensor scores_of(const std::function<Tensor(const Batch&)>& hidden, const Tensor& head,
                 const Batch& batch);
// Pairs of scored_batch; columns["margin"] [P] where the rows have one. Metrics: chosen_reward,
// rejected_reward, margin, accuracy.
Objective reward_objective(std::function<Tensor(const Batch&)> hidden, std::function<Tensor()> head,
                           const RewardConfig& config);

}  // namespace ingot
