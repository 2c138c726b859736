#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/pretrained.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;

Tensor row_of(const Json& ids) {
  const auto values = ids.get<std::vector<int64_t>>();
  return tensor_of(values, {1, static_cast<int64_t>(values.size())});
}

double largest_difference(std::span<const float> got, const Json& expected) {
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(got[i]) - expected[i].get<double>()));
  }
  return most;
}

int64_t argmax_of(std::span<const float> row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

// One case of an oracle's list: ids with the logits of the last token, the likeliest token after
// each, and the loss of each.
void expect_case(const Decoder& model, const Json& expected) {
  const Tensor ids = row_of(expected["ids"]);
  const Tensor logits = model.logits(ids);
  const auto V = static_cast<size_t>(model.config().vocab);
  const auto values = logits.values<float>();
  const size_t tokens = values.size() / V;
  EXPECT_LE(largest_difference(values.last(V), expected["logits_last"]), 1e-4);
  for (size_t t = 0; t < tokens; ++t) {
    EXPECT_EQ(argmax_of(values.subspan(t * V, V)), expected["argmax_each"][t].get<int64_t>());
  }
  const auto length = static_cast<int64_t>(tokens);
  const Tensor nll = cross_entropy(contiguous(slice(logits, 1, 0, length - 1)),
                                   contiguous(slice(ids, 1, 1, length)), Reduction::none);
  EXPECT_LE(largest_difference(nll.values<float>(), expected["nll_each"]), 1e-4);
}

TEST(PublishedCheckpoints, GiveTheirLogits) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const char* name : {"gpt2", "llama"}) {
    SCOPED_TRACE(name);
    const auto folder = *data_folder() / "model-tiny-archs" / name;
    const Pretrained loaded = load_pretrained(folder);
    const Json oracle = parse_json_file(folder / "oracle.json");
    for (const Json& expected : oracle["cases"]) {
      expect_case(*loaded.model, expected);
    }
  }
  const auto stories = *data_folder() / "model-stories260k";
  const Pretrained loaded = load_pretrained(stories / "hf");
  const Json oracle = parse_json_file(stories / "oracle_forward.json");
  for (const Json& expected : oracle["logits"]) {
    expect_case(*loaded.model, expected);
  }
}

struct TrainingCase {
  const char* oracle;  // key of the trajectory
  RuleConfig rule;
};

// The mean next-token loss over a batch of equally long rows.
Tensor batch_loss(const Decoder& model, const Json& batch) {
  std::vector<int64_t> ids;
  for (const Json& row : batch) {
    const auto values = row.get<std::vector<int64_t>>();
    ids.insert(ids.end(), values.begin(), values.end());
  }
  const auto rows = static_cast<int64_t>(batch.size());
  const int64_t tokens = static_cast<int64_t>(ids.size()) / rows;
  const Tensor all = tensor_of(ids, {rows, tokens});
  const Tensor inputs = contiguous(slice(all, 1, 0, tokens - 1));
  const Tensor labels = contiguous(slice(all, 1, 1, tokens));
  return linear_cross_entropy(model.hidden(inputs), model.output_weight(), labels) /
         static_cast<double>(labels.elements());
}

void expect_trajectory(const Json& oracle, const TrainingCase& now, DType dtype, double tolerance) {
  const Json& expected = oracle[now.oracle];
  const auto folder = *data_folder() / "model-stories260k" / "hf";
  const Pretrained loaded = load_pretrained(folder, dtype);
  Decoder& model = *loaded.model;
  model.require_gradients();
  OptimizerConfig config;
  config.rule = now.rule;
  config.kind = std::visit([](const auto& c) { return std::string(c.name); }, now.rule);
  Optimizer optimizer = make_optimizer(config, model.parameters());
  const Json& steps = expected["float64"];
  for (size_t step = 0; step < oracle["batches"].size(); ++step) {
    const Tensor loss = batch_loss(model, oracle["batches"][step]);
    EXPECT_NEAR(loss.item(), steps[step]["loss"].get<double>(), tolerance) << "step " << step;
    backward(loss);
    const double norm = gradient_norm(model.parameters());
    EXPECT_NEAR(norm, steps[step]["grad_norm_before_clip"].get<double>(), 20 * tolerance);
    optimizer.step(expected["lr"].get<double>(), clip_factor(norm, 1));
  }
  const double after = batch_loss(model, oracle["batches"][0]).item();
  EXPECT_NEAR(after, steps.back()["loss_batch0_after"].get<double>(), tolerance);
}

TEST(PublishedCheckpoints, TrainAlongTheirTrajectories) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Json oracle = parse_json_file(*data_folder() / "model-stories260k" / "oracle_train.json");
  SgdConfig momentum;
  momentum.momentum = 0.9;
  for (const TrainingCase& now :
       {TrainingCase{"adamw", AdamWConfig()}, TrainingCase{"sgd_momentum", momentum}}) {
    SCOPED_TRACE(now.oracle);
    // f64 follows to the 1e-6 that PyTorch adds to the norm, which both do; f32 to its rounding.
    expect_trajectory(oracle, now, DType::f64, 1e-9);
    expect_trajectory(oracle, now, DType::f32, 5e-6);
  }
}

}  // namespace
}  // namespace ingot::testing
