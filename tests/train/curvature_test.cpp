#include "ingot/train/curvature.h"

#include <gtest/gtest.h>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

// Adds up the estimates that it is given, and moves nothing.
class Listener : public Rule {
 public:
  std::string_view name() const override { return "listener"; }
  std::vector<Slot> slots(const Weight& p) const override {
    return {{"sum", p.full.shape(), p.full.dtype()}};
  }
  void update(Weight&, const Tensor&, TensorList&, const Step&) const override {}
  int64_t curvature_every() const override { return 1; }
  Curvature curvature() const override { return Curvature::hutchinson; }
  void observe_curvature(const Tensor& estimate, TensorList& slots) const override {
    copy_into(slots[0], slots[0] + estimate);
  }
};

Training of(Objective objective, Optimizer& optimizer, Randomness& randomness) {
  Training training;
  training.objective = std::move(objective);
  training.optimizer = &optimizer;
  training.randomness = &randomness;
  training.batch = [](int64_t) {
    return Batch{zeros({1, 1}, DType::i64), zeros({1, 1}, DType::i64), {}, {}};
  };
  return training;
}

TEST(Curvature, HutchinsonsEstimateOfAQuadraticIsItsDiagonal) {
  constexpr int64_t n = 6;
  const Tensor b = normal({n, n}, 0, 0.3, {1, 0, 1}, DType::f64);
  const Tensor a = matmul(b, transpose(b)) + 2 * one_hot(arange(n, DType::i64), n, DType::f64);
  Tensor w = normal({1, n}, 0, 1, {1, 0, 2}, DType::f64);
  require_grad(w);
  const Tensor before = copy_of(w);
  TensorDict parameters;
  parameters.add("w", w);
  Optimizer optimizer(parameters, std::make_unique<Listener>());
  Randomness randomness;
  Training training = of(
      [&](const Batch&) {
        // Twice the loss over a count of two: the estimate is of the mean.
        return Loss{sum(matmul(w, a) * w), 2, {}};
      },
      optimizer, randomness);
  constexpr int64_t probes = 4000;
  for (TrainState state; state.step < probes; ++state.step) {
    observe_curvature(state, training);
  }
  const Tensor found = optimizer.state().at("listener.sum/w") / static_cast<double>(probes);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const double exact = a.values<double>()[at * n + at];
    EXPECT_NEAR(found.values<double>()[at], exact, 0.1 * exact) << i;
  }
  EXPECT_TRUE(same_bits(w, before));
  EXPECT_FALSE(grad(w).defined());
}

TEST(Curvature, HutchinsonTakesNoHalfPrecisionWeights) {
  const auto model = tiny_model(0, DType::bf16);
  Optimizer optimizer(model->parameters(), make_rule(SophiaHConfig{}));
  Training training = of(tiny_objective(*model), optimizer, *model->randomness());
  training.batch = [](int64_t at) { return tiny_batch(at, 2); };
  EXPECT_NE(message_of(ErrorKind::config, [&] { observe_curvature({}, training); })
                .find("which bf16 weights are too coarse for"),
            std::string::npos);
}

TEST(Curvature, DrawnLabelsTakeAnObjectiveThatHasThem) {
  const auto model = tiny_model();
  Optimizer optimizer(model->parameters(), make_rule(SophiaConfig{}));
  Training training = of(tiny_objective(*model), optimizer, *model->randomness());
  EXPECT_EQ(message_of(ErrorKind::config, [&] { observe_curvature({}, training); }),
            "optim: sophia_g draws labels from the model, which this objective has not; choose "
            "another rule");
}

}  // namespace
}  // namespace ingot::testing
