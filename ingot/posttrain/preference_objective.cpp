#include "ingot/posttrain/preference_objective.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

bool is_real(const Tensor& x) { return x.device().kind != DeviceKind::meta; }

Loss loss_of(const PairLosses& found, const PairLogprobs& policy) {
  return {sum(found.losses), static_cast<double>(found.losses.size(0)),
          pair_metrics(found, policy)};
}

// An objective of pairs that needs no reference.
template <class F>
Objective of_pairs(Policy policy, F losses) {
  return [policy = std::move(policy), losses = std::move(losses)](const Batch& batch) {
    const PairLogprobs pairs = pairs_of(logprobs_of(policy, batch));
    return loss_of(losses(pairs), pairs);
  };
}

void add_pair_scores(const Tensor& chosen, const Tensor& rejected, Loss& loss) {
  if (!is_real(chosen)) {
    return;
  }
  loss.metrics["chosen_reward"] = sum(detach(chosen)).item();
  loss.metrics["rejected_reward"] = sum(detach(rejected)).item();
  loss.metrics["margin"] = loss.metrics["chosen_reward"] - loss.metrics["rejected_reward"];
  loss.metrics["accuracy"] = pairs_in_order(detach(chosen), detach(rejected));
}

}  // namespace

SequenceLogprobs logprobs_of(const Policy& policy, const Batch& batch) {
  return sequence_logprobs(policy.hidden(batch), policy.head(), batch.labels, policy.softcap);
}

Objective dpo_objective(Policy policy, Reference reference, const DpoConfig& config) {
  return
      [policy = std::move(policy), reference = std::move(reference), config](const Batch& batch) {
        const PairLogprobs before = pairs_of(reference(batch));
        const PairLogprobs now = pairs_of(logprobs_of(policy, batch));
        Loss loss = loss_of(dpo_losses(now, before, config), now);
        if (is_real(loss.sum)) {
          loss.metrics["kl"] = (sum(detach(now.chosen.sums) - before.chosen.sums).item() +
                                sum(detach(now.rejected.sums) - before.rejected.sums).item()) /
                               2;
        }
        return loss;
      };
}

Objective orpo_objective(Policy policy, const OrpoConfig& config) {
  return of_pairs(std::move(policy),
                  [config](const PairLogprobs& pairs) { return orpo_losses(pairs, config); });
}

Objective simpo_objective(Policy policy, const SimpoConfig& config) {
  return of_pairs(std::move(policy),
                  [config](const PairLogprobs& pairs) { return simpo_losses(pairs, config); });
}

Objective cpo_objective(Policy policy, const CpoConfig& config) {
  return of_pairs(std::move(policy),
                  [config](const PairLogprobs& pairs) { return cpo_losses(pairs, config); });
}

Objective kto_objective(Policy policy, Reference reference, const KtoConfig& config) {
  return [policy = std::move(policy), reference = std::move(reference),
          config](const Batch& batch) {
    const SequenceLogprobs before = reference(batch);
    const SequenceLogprobs now = logprobs_of(policy, batch);
    const int64_t answers = now.sums.size(0) / 2;
    const auto own = [&](const SequenceLogprobs& x) { return rows_of(x, 0, answers).sums; };
    const auto others = [&](const SequenceLogprobs& x) {
      return detach(rows_of(x, answers, 2 * answers).sums);
    };
    const double z = kto_reference_point(others(now), others(before));
    const Tensor desirable = is_real(now.sums) ? batch.columns.at("desirable")
                                               : empty({answers}, DType::bool_, now.sums.device());
    Loss loss;
    loss.sum = sum(kto_losses(own(now), own(before), desirable, z, config));
    loss.count = static_cast<double>(answers);
    if (is_real(loss.sum)) {
      const Tensor r = detach(own(now)) - own(before);
      const Tensor good = cast(desirable, r.dtype());
      const double goods = sum(good).item();
      const auto mean_reward = [&](const Tensor& which, double count) {
        return count > 0 ? config.beta * sum(r * which).item() / count * loss.count : 0;
      };
      loss.metrics["chosen_reward"] = mean_reward(good, goods);
      loss.metrics["rejected_reward"] = mean_reward(1 - good, loss.count - goods);
      loss.metrics["margin"] = loss.metrics["chosen_reward"] - loss.metrics["rejected_reward"];
      loss.metrics["kl"] = z * loss.count;
      const Tensor above = cast(greater(r, full(r.shape(), z, r.dtype())), r.dtype());
      loss.metrics["accuracy"] = sum(above * good + (1 - above) * (1 - good)).item();
    }
    return loss;
  };
}

Tensor scores_of(const std::function<Tensor(const Batch&)>& hidden, const Tensor& head,
                 const Batch& batch) {
  const Tensor all = hidden(batch);  // [B, T, D]
  const int64_t B = all.size(0), T = all.size(1), D = all.size(2);
  std::vector<int64_t> places;
  for (int64_t row = 0; row < B; ++row) {
    const bool real = is_real(all);
    places.push_back(
        row * T +
        (real ? batch.columns.at("ends").values<int64_t>()[static_cast<size_t>(row)] : 0));
  }
  const Tensor index = moved(tensor_of(places, {B}), all.device());
  const Tensor last = index_select(reshape(all, {B * T, D}), 0, index);
  return reshape(cast(linear(last, head), accumulator(all.dtype())), {B});
}

Objective reward_objective(std::function<Tensor(const Batch&)> hidden, std::function<Tensor()> head,
                           const RewardConfig& config) {
  return [hidden = std::move(hidden), head = std::move(head), config](const Batch& batch) {
    const Tensor scores = scores_of(hidden, head(), batch);
    const int64_t pairs = scores.size(0) / 2;
    const Tensor chosen = slice(scores, 0, 0, pairs);
    const Tensor rejected = slice(scores, 0, pairs, 2 * pairs);
    const Tensor margin = batch.columns.contains("margin")
                              ? cast(batch.columns.at("margin"), scores.dtype())
                              : Tensor();
    Loss loss;
    loss.sum = sum(bradley_terry_losses(chosen, rejected, margin, config.center));
    loss.count = static_cast<double>(pairs);
    add_pair_scores(chosen, rejected, loss);
    return loss;
  };
}

}  // namespace ingot
