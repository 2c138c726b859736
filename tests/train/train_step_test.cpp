#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/rule.h"
#include "ingot/tensor/copy.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// An "update" p ← scale·g: after a step the parameters are the gradient that the step would apply.
class Expose : public Rule {
 public:
  std::string_view name() const override { return "expose"; }
  std::vector<Slot> slots(const Weight&) const override { return {}; }
  void update(Weight& p, const Tensor& g, TensorList&, const Step& step) const override {
    const auto from = g.values<float>();
    const auto to = p.full.mutable_values<float>();
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<float>(static_cast<double>(from[i]) * step.scale);
    }
  }
};

struct Exposed {
  std::unique_ptr<Decoder> model;
  StepReport report;
};

Exposed gradient_of_a_step(int64_t accumulate, double max_norm = 0) {
  Exposed out{tiny_model(), {}};
  Optimizer optimizer(out.model->parameters(), std::make_unique<Expose>());
  Training training = tiny_training(*out.model, optimizer, 1, accumulate);
  training.max_norm = max_norm;
  TrainState state;
  out.report = train_step(state, training);
  return out;
}

TensorDict copies(const TensorDict& parameters) {
  return parameters.mapped([](const std::string&, const Tensor& p) { return copy_of(p); });
}

double norm_of(const TensorDict& values) {
  double sum = 0;
  for (const auto& [name, tensor] : values) {
    for (const float value : tensor.values<float>()) {
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  return std::sqrt(sum);
}

std::vector<double> losses_of(int64_t steps, int64_t accumulate, double dropout = 0,
                              uint64_t seed = 7) {
  const auto model = tiny_model(dropout);
  model->randomness()->seed = seed;
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, steps, accumulate, 3e-3);
  Reports reports;
  training.observers = {&reports};
  TrainState state;
  train(state, training);
  return reports.losses();
}

TEST(TrainStep, AnySplitOfABatchHasTheSameGradient) {
  const Exposed whole = gradient_of_a_step(1);
  const double scale = norm_of(whole.model->parameters());
  for (const int64_t accumulate : {2, 4, 8}) {
    const Exposed split = gradient_of_a_step(accumulate);
    EXPECT_EQ(split.report.tokens, whole.report.tokens);
    double squared = 0;
    for (const auto& [name, tensor] : whole.model->parameters()) {
      const auto a = tensor.values<float>();
      const auto b = split.model->parameters().at(name).values<float>();
      for (size_t i = 0; i < a.size(); ++i) {
        squared += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      }
    }
    EXPECT_LE(std::sqrt(squared) / scale, 1e-6) << accumulate << " micro-batches";
    EXPECT_NEAR(split.report.loss, whole.report.loss, 1e-6);
    EXPECT_NEAR(split.report.grad_norm / whole.report.grad_norm, 1, 1e-6);
  }
}

TEST(TrainStep, MicroBatchesOfUnequalCountsAreNotAveragedByTheirMeans) {
  // Guards the test above: the mean of the micro-batches' means is another number here.
  const auto model = tiny_model();
  const Objective objective = tiny_objective(*model);
  double means = 0;
  for (int64_t micro = 0; micro < 4; ++micro) {
    const Loss loss = objective(tiny_batch(2 * micro, 2));
    means += loss.sum.item() / loss.count / 4;
  }
  EXPECT_GT(std::abs(means - gradient_of_a_step(1).report.loss), 1e-3);
}

TEST(TrainStep, AnySplitOfABatchHasTheSameFiftyLosses) {
  const std::vector<double> whole = losses_of(50, 1);
  EXPECT_LT(whole.back(), whole.front() - 0.1);
  for (const int64_t accumulate : {2, 4}) {
    const std::vector<double> split = losses_of(50, accumulate);
    for (size_t step = 0; step < whole.size(); ++step) {
      EXPECT_NEAR(split[step], whole[step], 1e-5) << accumulate << " micro-batches, step " << step;
    }
  }
}

TEST(TrainStep, ReportsWhatItDid) {
  const auto model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 3, 2);
  training.learning_rate = [](int64_t step) { return 0.25 + static_cast<double>(step); };
  Reports reports;
  training.observers = {&reports};
  TrainState state;
  train(state, training);
  ASSERT_EQ(reports.all.size(), 3u);
  int64_t tokens = 0;
  for (size_t i = 0; i < 3; ++i) {
    const StepReport& report = reports.all[i];
    EXPECT_EQ(report.step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(report.learning_rate, 0.25 + static_cast<double>(i));
    EXPECT_GT(report.flops, 0);
    EXPECT_GT(report.seconds, 0);
    tokens += report.tokens;
  }
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.position, 24);
  EXPECT_EQ(state.tokens, tokens);
}

TEST(TrainStep, MetricsAreMeansOverTheStepsTokens) {
  const auto model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 1, 4);
  training.objective = [inner = training.objective](const Batch& batch) {
    Loss loss = inner(batch);
    loss.metrics["twice"] = 2 * loss.count;
    return loss;
  };
  TrainState state;
  EXPECT_DOUBLE_EQ(train_step(state, training).metrics.at("twice"), 2);
}

TEST(TrainStep, ClipsTheMeanGradientAndReportsTheNormBefore) {
  const Exposed free = gradient_of_a_step(2);
  const Exposed clipped = gradient_of_a_step(2, 0.01);
  ASSERT_GT(free.report.grad_norm, 0.02);
  EXPECT_NEAR(norm_of(free.model->parameters()) / free.report.grad_norm, 1, 1e-6);
  EXPECT_EQ(clipped.report.grad_norm, free.report.grad_norm);
  EXPECT_NEAR(norm_of(clipped.model->parameters()), 0.01, 1e-5);  // torch's form: norm + 1e-6
  const Exposed loose = gradient_of_a_step(2, 1e6);
  EXPECT_EQ(norm_of(loose.model->parameters()), norm_of(free.model->parameters()));
}

TEST(TrainStep, TellsRandomnessWhichMicroBatchOfWhichStepItIs) {
  const auto model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 2, 2);
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  training.objective = [&, inner = training.objective](const Batch& batch) {
    EXPECT_TRUE(training.randomness->training);
    seen.emplace_back(training.randomness->step, training.randomness->micro);
    return inner(batch);
  };
  TrainState state;
  train(state, training);
  using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(seen, (Pairs{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(TrainStep, DropoutRepeatsWithTheSeedAndDiffersWithAnother) {
  const std::vector<double> losses = losses_of(5, 2, 0.2);
  EXPECT_EQ(losses_of(5, 2, 0.2), losses);
  EXPECT_NE(losses_of(5, 2, 0.2, 8), losses);
  EXPECT_NE(losses_of(5, 2), losses);
}

// A step whose second micro-batch has a loss multiplied by `factor`.
struct Spoiled {
  std::unique_ptr<Decoder> model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 4, 2);
  TrainState state;
  int64_t calls = 0;

  explicit Spoiled(double factor) {
    train_step(state, training);
    training.objective = [this, factor, inner = training.objective](const Batch& batch) {
      Loss loss = inner(batch);
      if (++calls == 2) {
        loss.sum = loss.sum * factor;
      }
      return loss;
    };
  }
};

void expect_refused_without_a_trace(double factor, const std::string& what) {
  Spoiled run(factor);
  const TensorDict before = copies(run.model->parameters());
  const TensorDict optimizer_before = copies(run.optimizer.state());
  const std::string message =
      message_of(ErrorKind::numeric, [&] { train_step(run.state, run.training); });
  EXPECT_THAT(message, HasSubstr("step 2: the " + what));
  EXPECT_THAT(message, HasSubstr("samples from 8"));
  EXPECT_THAT(message, HasSubstr("nothing was updated"));
  for (const auto& [name, tensor] : before) {
    EXPECT_TRUE(same_bits(tensor, run.model->parameters().at(name))) << name;
  }
  for (const auto& [name, tensor] : optimizer_before) {
    EXPECT_TRUE(same_bits(tensor, run.optimizer.state().at(name))) << name;
  }
  EXPECT_EQ(run.state.step, 1);
  EXPECT_EQ(run.state.position, 8);

  // The next attempt (spoiled no more) is the step that would have been: nothing is left behind.
  const StepReport report = train_step(run.state, run.training);
  Spoiled untouched(1);
  const StepReport expected = train_step(untouched.state, untouched.training);
  EXPECT_EQ(report.loss, expected.loss);
  EXPECT_EQ(report.grad_norm, expected.grad_norm);
}

TEST(TrainStep, ANonFiniteLossStopsBeforeTheUpdate) {
  expect_refused_without_a_trace(std::numeric_limits<double>::quiet_NaN(), "loss is nan");
  expect_refused_without_a_trace(std::numeric_limits<double>::infinity(), "loss is inf");
}

TEST(TrainStep, ANonFiniteGradientStopsBeforeTheUpdate) {
  // √(0·w) is 0; its derivative is not finite.
  Spoiled run(1);
  run.training.objective = [&run, inner = run.training.objective](const Batch& batch) {
    Loss loss = inner(batch);
    loss.sum = loss.sum + sum(sqrt(0.0 * run.model->embedding.weight));
    return loss;
  };
  const TensorDict before = copies(run.model->parameters());
  EXPECT_THAT(message_of(ErrorKind::numeric, [&] { train_step(run.state, run.training); }),
              HasSubstr("the gradient norm is "));
  for (const auto& [name, tensor] : before) {
    EXPECT_TRUE(same_bits(tensor, run.model->parameters().at(name))) << name;
  }
}

TEST(TrainStep, AStepWithoutAnyTargetIsRefused) {
  Spoiled run(1);
  run.training.batch = [](int64_t) {
    Batch batch = tiny_batch(0, 4);
    batch.labels = full({4, 16}, static_cast<double>(ignored_label), DType::i64);
    return batch;
  };
  EXPECT_THAT(message_of(ErrorKind::config, [&] { train_step(run.state, run.training); }),
              HasSubstr("step 2: no target counts: every label of its 8 samples is ignored"));
  EXPECT_EQ(run.state.position, 8);
}

TEST(Train, StopsBetweenStepsWhenAsked) {
  const auto model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 10);
  Reports reports;
  training.observers = {&reports};
  training.stop = [&] { return reports.all.size() == 3; };
  TrainState state;
  train(state, training);
  EXPECT_EQ(state.step, 3);
  training.stop = nullptr;
  train(state, training);
  EXPECT_EQ(state.step, 10);
  EXPECT_EQ(reports.losses(), [] {
    const auto whole = tiny_model();
    Optimizer rule = make_optimizer({}, whole->parameters());
    Training again = tiny_training(*whole, rule, 10);
    Reports all;
    again.observers = {&all};
    TrainState start;
    train(start, again);
    return all.losses();
  }());
}

}  // namespace
}  // namespace ingot::testing
