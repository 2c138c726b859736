#include "ingot/train/router_losses.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/nn/router_losses.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "tests/support/op_case.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

std::unique_ptr<Decoder> model_with_experts(double balance, double z_loss,
                                            const std::string& span = "layer") {
  DecoderConfig config = tiny_config();
  config.moe.experts = 4;
  config.moe.balance = balance;
  config.moe.z_loss = z_loss;
  config.moe.balance_span = span;
  auto model = std::make_unique<Decoder>(config);
  nn::initialise(*model, {"normal", 0.2}, 3);
  model->require_gradients();
  return model;
}

// Gradients of the mean loss of eight rows in `parts` micro-batches, and the loads of the step.
struct StepOutcome {
  TensorDict gradients;
  std::vector<std::vector<double>> loads;
  double balance = 0;  // mean of the metric
};

StepOutcome step_of(const Decoder& model, int64_t parts) {
  nn::ExpertLoads loads;
  double count = 0;
  StepOutcome out;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t rows = 8 / parts;
    const Batch batch = tiny_batch(part * rows, rows);
    std::vector<nn::Routed> routed;
    const Tensor hidden = model.hidden(batch.ids, {}, routed);
    Loss loss;
    loss.sum = linear_cross_entropy(hidden, model.output_weight(), batch.labels);
    for (const int64_t label : batch.labels.values<int64_t>()) {
      loss.count += label == ignored_label ? 0 : 1;
    }
    add_router_losses(loss, routed, model.config().moe, batch.labels, loads);
    backward(loss.sum);
    count += loss.count;
    out.balance += loss.metrics["balance_loss"];
  }
  out.balance /= count;
  for (const auto& [name, parameter] : model.parameters()) {
    out.gradients.add(name, detach(grad(parameter)) / count);
    clear_grad(parameter);
  }
  out.loads = loads.loads();
  return out;
}

double largest_difference(const TensorDict& a, const TensorDict& b) {
  double most = 0;
  for (const auto& [name, value] : a) {
    most = std::max(most, difference(b.at(name), value));
  }
  return most;
}

TEST(RouterLosses, TheZLossHasTheSameGradientInAnyDivision) {
  const auto model = model_with_experts(0, 0.1);
  const StepOutcome whole = step_of(*model, 1);
  for (const int64_t parts : {2, 4, 8}) {
    const StepOutcome divided = step_of(*model, parts);
    // Sums in another order: 2e-8 found.
    EXPECT_LE(largest_difference(whole.gradients, divided.gradients), 1e-6) << parts;
    EXPECT_EQ(divided.loads, whole.loads);  // so the corrections' step is the same too
  }
}

// Of one micro-batch, per layer or over all of them.
double balance_of(const std::vector<nn::Routed>& routed, const Tensor& counts,
                  const std::string& span) {
  const auto of = [&](const std::vector<nn::Routed>& layers) {
    return nn::load_balancing_loss(layers, nn::RouterScore::softmax, counts).item();
  };
  return span == "model" ? of(routed) : (of({routed[0]}) + of({routed[1]})) / 2;
}

void expect_mean_over_micro_batches(const std::string& span) {
  const auto model = model_with_experts(0.1, 0, span);
  const StepOutcome divided = step_of(*model, 2);
  double expected = 0, count = 0;
  for (const int64_t part : {0, 1}) {
    const Batch batch = tiny_batch(part * 4, 4);
    std::vector<nn::Routed> routed;
    model->hidden(batch.ids, {}, routed);
    const Tensor flat = reshape(batch.labels, {batch.labels.elements()});
    const Tensor counts = cast(not_equal(flat, scalar(ignored_label, DType::i64)), DType::f32);
    double tokens = 0;
    for (const float one : counts.values<float>()) {
      tokens += static_cast<double>(one);
    }
    expected += tokens * balance_of(routed, counts, span);
    count += tokens;
  }
  EXPECT_NEAR(divided.balance, expected / count, 1e-6);
  // A product of means: divided it is another function, and near for as many tokens as these.
  const StepOutcome whole = step_of(*model, 1);
  EXPECT_GT(largest_difference(whole.gradients, divided.gradients), 1e-6);
  EXPECT_NEAR(whole.balance, divided.balance, 0.05 * whole.balance);
  EXPECT_EQ(divided.loads, whole.loads);
}

TEST(RouterLosses, TheBalanceLossIsTheMeanOverMicroBatchesByTheirTokens) {
  expect_mean_over_micro_batches("layer");
  expect_mean_over_micro_batches("model");
}

TEST(RouterLosses, LeaveADenseModelAlone) {
  Loss loss;
  nn::ExpertLoads loads;
  add_router_losses(loss, {}, {}, tensor_of<int64_t>({1}, {1, 1}), loads);
  EXPECT_FALSE(loss.sum.defined());
  EXPECT_TRUE(loads.loads().empty());
}

TEST(RouterLosses, OfAMicroBatchWithoutLabelsAreZero) {
  const auto model = model_with_experts(0.1, 0.1);
  Batch batch = tiny_batch(0, 2);
  fill(batch.labels, static_cast<double>(ignored_label));
  std::vector<nn::Routed> routed;
  const Tensor hidden = model->hidden(batch.ids, {}, routed);
  Loss loss;
  loss.sum = linear_cross_entropy(hidden, model->output_weight(), batch.labels);
  nn::ExpertLoads loads;
  add_router_losses(loss, routed, model->config().moe, batch.labels, loads);
  EXPECT_EQ(loss.sum.item(), 0);
  EXPECT_EQ(loads.busiest(), 0);
}

}  // namespace
}  // namespace ingot::testing
