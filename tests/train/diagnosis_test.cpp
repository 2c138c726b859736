#include "ingot/train/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/ops/cross_entropy.h"
#include "ingot/optim/clip.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"
#include "tests/train/faults.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

StepReport diagnosed(Patient& patient) {
  patient.training.numbers.diagnose = 1;
  ::testing::internal::CaptureStderr();
  StepReport report = train_step(patient.state, patient.training);
  ::testing::internal::GetCapturedStderr();
  return report;
}

TEST(Diagnosis, ReportsEveryLayerAndChangesNothing) {
  Patient plain, watched;
  const StepReport expected = train_step(plain.state, plain.training);
  const StepReport found = diagnosed(watched);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.grad_norm, expected.grad_norm);
  for (const char* name : {"grad_norm", "update_ratio", "activation_rms", "activation_max",
                           "dead_units", "max_logit"}) {
    for (const char* layer : {"layers.0", "layers.1"}) {
      EXPECT_TRUE(found.metrics.contains(concat(name, "/", layer))) << name << layer;
    }
  }
  EXPECT_TRUE(found.metrics.contains("grad_norm/embedding"));
  EXPECT_THAT(found.events, ::testing::IsEmpty());
}

TEST(Diagnosis, TheNormsOfThePartsMakeThatOfTheWhole) {
  Patient patient(4, 2);
  const StepReport report = diagnosed(patient);
  double squares = 0;
  for (const auto& [name, value] : report.metrics) {
    squares += name.starts_with("grad_norm/") ? value * value : 0;
  }
  EXPECT_NEAR(std::sqrt(squares), report.grad_norm, 1e-6 * report.grad_norm);
}

TEST(Diagnosis, TheUpdateRatioIsThatOfTheWeights) {
  Patient patient;
  TensorDict before = patient.model->parameters().mapped(
      [](const std::string&, const Tensor& x) { return copy_of(x); });
  const StepReport report = diagnosed(patient);
  double moved = 0, held = 0;
  for (const auto& [name, p] : patient.model->parameters()) {
    if (!name.starts_with("layers.1.")) {
      continue;
    }
    for (size_t i = 0; i < p.values<float>().size(); ++i) {
      const double was = before.at(name).values<float>()[i];
      moved += std::pow(p.values<float>()[i] - was, 2);
      held += was * was;
    }
  }
  EXPECT_NEAR(report.metrics.at("update_ratio/layers.1"), std::sqrt(moved / held), 1e-9);
}

TEST(Diagnosis, WarnsOfGradientsThatVanishOrExplode) {
  for (const double factor : {1e-6, 1e6}) {
    Patient patient;
    patient.model->layers[1]->wrap([factor](const nn::Block::Run& run, const Tensor& x) {
      TensorList ys = run(record("faint", copy_of(x), wrt(x, [factor](const Tensor& dy) {
                                   Tensor dx = copy_of(dy);
                                   for (float& v : dx.mutable_values<float>()) {
                                     v *= static_cast<float>(factor);
                                   }
                                   return dx;
                                 })));
      return ys;
    });
    EXPECT_THAT(diagnosed(patient).events,
                Contains(AllOf(StartsWith(factor < 1 ? "vanishing gradients: the norm of layers.0"
                                                     : "exploding gradients: the norm of layers.0"),
                               HasSubstr(", of layers.1 "))));
  }
}

TEST(Diagnosis, WarnsOfDeadUnits) {
  Patient patient;
  Tensor gate = patient.model->parameters().at("layers.0.mlp.gate.weight");
  auto values = gate.mutable_values<float>();
  std::fill(values.begin(), values.begin() + 16 * 16, 0.0F);  // half of the 32 units
  const StepReport report = diagnosed(patient);
  EXPECT_EQ(report.metrics.at("dead_units/layers.0"), 0.5);
  EXPECT_EQ(report.metrics.at("dead_units/layers.1"), 0);
  EXPECT_THAT(report.events, Contains("dead units: 50 % of the feed-forward units of layers.0 are "
                                      "0 for every token"));
}

TEST(Diagnosis, WarnsOfAttentionLogitsThatGrow) {
  Patient small, large;
  const double before = diagnosed(small).metrics.at("max_logit/layers.1");
  for (const char* name : {"layers.1.attention.wq.weight", "layers.1.attention.wk.weight"}) {
    for (float& value : large.model->parameters().at(name).mutable_values<float>()) {
      value *= 16;
    }
  }
  const StepReport report = diagnosed(large);
  EXPECT_NEAR(report.metrics.at("max_logit/layers.1"), 256 * before, 1e-3 * 256 * before);
  EXPECT_THAT(report.events,
              Contains(StartsWith("instability: an attention logit of layers.1 is ")));
}

// Rows whose logits are all 0; those that do not count have large ones.
TEST(Diagnosis, ReportsTheMeanMagnitudeOfLogZOverTheLabelsThatCount) {
  Patient patient(4, 2);
  patient.training.objective = [w = patient.model->output_weight()](const Batch& b) {
    Loss loss;
    const Tensor labels = reshaped(b.labels, {b.labels.elements()});
    std::vector<float> x;
    for (const int64_t label : labels.values<int64_t>()) {
      for (int64_t i = 0; i < 16; ++i) {
        x.push_back(label == ignored_label ? 1000.f : 0.f);
      }
      loss.count += label == ignored_label ? 0 : 1;
    }
    const Tensor rows = tensor_of(x, {labels.elements(), 16});
    loss.sum = linear_cross_entropy(rows, w, labels);
    return loss;
  };
  EXPECT_NEAR(diagnosed(patient).metrics.at("log_z"), std::log(40), 1e-6);
}

TEST(Diagnosis, WarnsOfUpdatesThatAreLarge) {
  Patient patient;
  patient.training.learning_rate = [](int64_t) { return 0.5; };
  EXPECT_THAT(diagnosed(patient).events,
              Contains(StartsWith("instability: the update of layers.0 is ")));
}

TEST(Diagnosis, KnowsThePartsOfNames) {
  EXPECT_EQ(part_of("layers.12.mlp.up.weight"), "layers.12");
  EXPECT_EQ(part_of("embedding.weight"), "embedding");
  EXPECT_EQ(part_of("norm"), "norm");
}

}  // namespace
}  // namespace ingot::testing
