#include "ingot/posttrain/preference.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"

namespace ingot {

PairLogprobs pairs_of(const SequenceLogprobs& rows) {
  const int64_t pairs = rows.sums.size(0) / 2;
  check(rows.sums.size(0) == 2 * pairs, ErrorKind::shape,
        "pairs_of: takes chosen rows and as many rejected ones: got ", rows.sums.size(0), " rows");
  return {rows_of(rows, 0, pairs), rows_of(rows, pairs, 2 * pairs)};
}

PairLogprobs detached(const PairLogprobs& pairs) {
  return {{detach(pairs.chosen.sums), pairs.chosen.lengths},
          {detach(pairs.rejected.sums), pairs.rejected.lengths}};
}

std::map<std::string, double> pair_metrics(const PairLosses& found, const PairLogprobs& policy) {
  std::map<std::string, double> out;
  if (found.losses.device().kind == DeviceKind::meta) {
    return out;
  }
  const Tensor& chosen = found.chosen_rewards;
  const Tensor& rejected = found.rejected_rewards;
  const auto total = [](const Tensor& x) { return sum(detach(x)).item(); };
  const auto share = [&](const Tensor& holds) { return total(cast(holds, chosen.dtype())); };
  out["chosen_reward"] = total(chosen);
  out["rejected_reward"] = total(rejected);
  out["margin"] = out["chosen_reward"] - out["rejected_reward"];
  out["accuracy"] = (share(greater(chosen, rejected)) + share(greater_equal(chosen, rejected))) / 2;
  out["chosen_logp"] = total(policy.chosen.sums);
  out["rejected_logp"] = total(policy.rejected.sums);
  return out;
}

}  // namespace ingot
