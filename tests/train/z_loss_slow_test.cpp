// The z-loss holds the logarithm of the softmax's normaliser near 0 at no cost to what is learnt
// (Chowdhery et al. 2022, arXiv:2204.02311, section 5).
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/reduce.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

// 16 sequences of 16 tokens: each token is followed by one of four, one of them half of the time.
Batch chains() {
  constexpr int64_t rows = 16, T = 16;
  const Philox random({9, 0, 0});
  std::vector<int64_t> ids, labels;
  for (int64_t row = 0; row < rows; ++row) {
    const auto drawn = [&](int64_t t) {
      return static_cast<int64_t>(random.word(static_cast<uint64_t>(row * (T + 1) + t)));
    };
    int64_t token = drawn(0) % 40;
    for (int64_t t = 0; t < T; ++t) {
      const int64_t eighth = drawn(t + 1) % 8;
      const int64_t way = eighth < 4 ? 0 : eighth < 6 ? 1 : eighth < 7 ? 2 : 3;
      ids.push_back(token);
      token = (token * 7 + 11 * way * way + 3) % 40;
      labels.push_back(token);
    }
  }
  return {tensor_of(ids, {rows, T}), tensor_of(labels, {rows, T}), {}};
}

struct Measured {
  double log_z = 0;  // mean |log Σ_v exp l_v|
  double loss = 0;   // mean cross-entropy, without the z-loss
};

Measured measured(const Decoder& model, const Batch& batch) {
  const NoGrad no_grad;
  const Tensor logits = model.logits(batch.ids);
  const Tensor log_z = logsumexp(logits, -1);
  Measured out;
  for (const float value : log_z.values<float>()) {
    out.log_z += std::abs(static_cast<double>(value));
  }
  out.log_z /= static_cast<double>(log_z.elements());
  out.loss = cross_entropy(logits, batch.labels, Reduction::mean, {}).item();
  return out;
}

// Ten measurements over a run that sees the same sequences in every step: without noise of the
// gradient a weight of 1e-4 shows within some thousand steps.
std::vector<Measured> trained(double z_loss) {
  constexpr int64_t steps = 4000;
  const Batch batch = chains();
  Decoder model(tiny_config());
  nn::initialise(model, {"normal", 0.02}, 3);
  model.require_gradients();
  Optimizer optimizer = make_optimizer({}, model.parameters());
  Training training = tiny_training(model, optimizer, steps);
  training.batch = [&batch](int64_t) { return batch; };
  training.learning_rate = [](int64_t step) {
    return 0.01 * std::min(1.0, 2.0 * static_cast<double>(steps - step) / steps);
  };
  training.objective = [&model, z_loss](const Batch& now) {
    CrossEntropyOptions options;
    options.z_loss = z_loss;
    Loss loss;
    loss.sum =
        linear_cross_entropy(model.hidden(now.ids), model.output_weight(), now.labels, options);
    loss.count = static_cast<double>(now.labels.elements());
    return loss;
  };
  std::vector<Measured> out;
  TrainState state;
  while (state.step < steps) {
    train_step(state, training);
    if (state.step % (steps / 10) == 0) {
      out.push_back(measured(model, batch));
      std::cout << "z-loss " << z_loss << ", step " << state.step << ": |log Z| "
                << out.back().log_z << ", cross-entropy " << out.back().loss << '\n';
    }
  }
  return out;
}

TEST(ZLoss, HoldsTheNormaliserUnderOneWhereItDriftsUpwardWithout) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);  // the products are too small for more
  const std::vector<Measured> without = trained(0);
  const std::vector<Measured> with = trained(1e-4);
  omp_set_num_threads(threads);
  EXPECT_GT(without.back().log_z, 4 * std::log(40.0));  // it starts at log V
  for (size_t i = with.size() / 2; i < with.size(); ++i) {
    EXPECT_LT(with[i].log_z, 1) << i;
  }
  EXPECT_NEAR(with.back().loss, without.back().loss, 0.005 * without.back().loss);
}

}  // namespace
}  // namespace ingot::testing
