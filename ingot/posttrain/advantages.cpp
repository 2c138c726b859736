#include "ingot/posttrain/advantages.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_groups(const Tensor& rewards) {
  check(rewards.rank() == 2 && rewards.size(1) >= 2, ErrorKind::shape,
        "advantages: rewards must be prompts by at least 2 answers each: they are ",
        rewards.shape());
}

}  // namespace

Advantages gae(const Tensor& rewards, const Tensor& values, const Tensor& mask, double gamma,
               double lambda) {
  const NoGrad quiet;
  check(rewards.rank() == 2 && rewards.shape() == values.shape() && rewards.shape() == mask.shape(),
        ErrorKind::shape, "gae: rewards, values and mask must be [B, T] alike: rewards are ",
        rewards.shape(), ", values ", values.shape(), ", mask ", mask.shape());
  check(gamma >= 0 && gamma <= 1 && lambda >= 0 && lambda <= 1, ErrorKind::argument,
        "gae: gamma and lambda must be in [0, 1]: gamma is ", gamma, ", lambda is ", lambda);
  const Tensor none = zeros({rewards.size(0), 1}, rewards.dtype(), rewards.device());
  const Tensor written = not_equal(mask, scalar(0, mask.dtype(), mask.device()));
  Tensor next_value = none;
  Tensor next_advantage = none;
  TensorList columns(static_cast<size_t>(rewards.size(1)));
  for (int64_t t = rewards.size(1) - 1; t >= 0; --t) {
    const auto at = [t](const Tensor& x) { return slice(x, 1, t, t + 1); };
    const Tensor delta = at(rewards) + next_value * gamma - at(values);
    const Tensor advantage = delta + next_advantage * (gamma * lambda);
    columns[static_cast<size_t>(t)] = where(at(written), advantage, none);
    next_advantage = where(at(written), advantage, next_advantage);
    next_value = where(at(written), at(values), next_value);
  }
  if (columns.empty()) {
    return {zeros(rewards.shape(), rewards.dtype(), rewards.device()),
            zeros(rewards.shape(), rewards.dtype(), rewards.device())};
  }
  const Tensor advantages = concat(columns, int64_t{1});
  return {advantages, where(written, advantages + values, advantages)};
}

Tensor whitened(const Tensor& x, const Tensor& mask) {
  const NoGrad quiet;
  const double n = sum(mask).item();
  check(n >= 2, ErrorKind::argument,
        "whitened: a deviation needs at least 2 places of the mask; it has ", n);
  const Tensor away = (x - sum(x * mask) / n) * mask;
  return away / sqrt(sum(square(away)) / (n - 1) + 1e-8);
}

Tensor centered_advantages(const Tensor& rewards) {
  const NoGrad quiet;
  check_groups(rewards);
  const Tensor away = rewards - mean(rewards, 1, Keep::yes);
  // The mean of equal numbers is rounded: what would be left of them is not a reward.
  const Tensor same = equal(max(rewards, 1, Keep::yes), min(rewards, 1, Keep::yes));
  return where(same, scalar(0, rewards.dtype(), rewards.device()), away);
}

Tensor normalized_advantages(const Tensor& rewards, double eps, Deviation deviation) {
  const NoGrad quiet;
  const Tensor away = centered_advantages(rewards);
  return away / (sqrt(var(rewards, 1, deviation == Deviation::sample ? 1 : 0, Keep::yes)) + eps);
}

Tensor leave_one_out_advantages(const Tensor& rewards) {
  const NoGrad quiet;
  const Tensor away = centered_advantages(rewards);
  const auto G = static_cast<double>(rewards.size(1));
  return away * (G / (G - 1));
}

}  // namespace ingot
