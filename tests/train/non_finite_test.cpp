#include "ingot/train/non_finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ingot/autograd/checkpoint.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "tests/support/message.h"
#include "tests/train/faults.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// Puts `value` at one element of what layer `layer` gives.
void plant_in_layer(Patient& patient, size_t layer, int64_t element, float value) {
  patient.model->layers[layer]->wrap([=](const nn::Block::Run& run, const Tensor& x) {
    const PartScope scope(concat("layers.", layer));
    TensorList ys = run(x);
    ys.front() = planted(ys.front(), element, value);
    return ys;
  });
}

std::string halt_message(Patient& patient) {
  return message_of(ErrorKind::numeric, [&] { train(patient.state, patient.training); });
}

TEST(NonFinite, ANanPlantedInALayerIsNamedWithLayerOperationPlaceAndSample) {
  Patient patient;
  constexpr int64_t row = 5, token = 3, feature = 7;
  plant_in_layer(patient, 1, (row * 16 + token) * 16 + feature, nan_value);
  EXPECT_EQ(
      halt_message(patient),
      "step 1: the loss is nan, samples from 0: the first value that is not finite is nan made "
      "by planted in layers.1, at [5, 3, 7] of [8, 16, 16], sample 5; nothing was updated: "
      "lower the learning rate, lengthen the warm-up or clip gradients");
  EXPECT_EQ(patient.state.step, 0);
  EXPECT_EQ(patient.state.position, 0);
}

TEST(NonFinite, TheSampleIsCountedFromTheStartOfTheRun) {
  Patient patient(4, 2);
  plant_in_layer(patient, 0, 2 * 16 * 16, nan_value);
  patient.state.step = 3;
  patient.state.position = 24;
  EXPECT_THAT(halt_message(patient), AllOf(HasSubstr("in layers.0"), HasSubstr("sample 26")));
}

TEST(NonFinite, RecomputationDoesNotHideTheLayer) {
  Patient patient;
  plant_in_layer(patient, 1, 0, nan_value);
  for (const auto& layer : patient.model->layers) {
    layer->wrap([](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
  }
  EXPECT_THAT(halt_message(patient), HasSubstr("nan made by planted in layers.1, at [0, 0, 0]"));
}

TEST(NonFinite, AWeightThatIsNotFiniteIsNamedItself) {
  Patient patient;
  flip_bit(patient.model->parameters().at("layers.1.mlp.up.weight"), 17, 30);
  plant(patient.model->parameters().at("layers.0.attention.wk.weight"), 33, -1.0F / 0.0F);
  EXPECT_THAT(
      halt_message(patient),
      HasSubstr("is -inf in the parameter layers.0.attention.wk.weight at [2, 1] of [16, 16]"));
}

TEST(NonFinite, AnOverflowNamesTheParameterThatTheOperationReads) {
  Patient patient;
  Tensor weight = patient.model->parameters().at("layers.1.mlp.down.weight");
  fill(weight, 3e38);
  EXPECT_THAT(
      halt_message(patient),
      AllOf(HasSubstr("inf made by linear in layers.1 with layers.1.mlp.down.weight, at [0, "
                      "0, "),
            HasSubstr("sample 0")));
}

// The identity, with a gradient that is NaN for one element.
Tensor bad_gradient(const Tensor& x, int64_t element) {
  return record("sharp", copy_of(x), wrt(x, [element](const Tensor& dy) {
                  Tensor dx = copy_of(dy);
                  plant(dx, element, nan_value);
                  return dx;
                }));
}

TEST(NonFinite, ABadGradientIsNamedWithItsOperationThoughTheLossIsFine) {
  Patient patient;
  patient.model->layers[0]->wrap([](const nn::Block::Run& run, const Tensor& x) {
    const PartScope scope("layers.0");
    TensorList ys = run(x);
    ys.front() = bad_gradient(ys.front(), 2 * 16 * 16 + 5);
    return ys;
  });
  EXPECT_THAT(halt_message(patient),
              AllOf(HasSubstr("step 1: the gradient norm is nan"),
                    HasSubstr("nan made by the backward of sharp in layers.0, at [2, 0, 5]"),
                    HasSubstr("sample 2")));
}

TEST(NonFinite, NothingIsFoundWhereAllIsFinite) {
  Patient patient;
  EXPECT_FALSE(find_non_finite(patient.state, patient.training));
  for (const auto& [name, p] : patient.model->parameters()) {
    EXPECT_FALSE(grad(p).defined()) << name;
  }
}

TEST(NonFinite, TheFirstElementIsFoundInEveryType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    Tensor x = zeros({3, 100000}, DType::f32);
    EXPECT_FALSE(first_non_finite(converted(x, dtype)));
    plant(x, 250001, nan_value);
    plant(x, 250000, -1.0F / 0.0F);
    EXPECT_EQ(first_non_finite(converted(x, dtype)), 250000);
    EXPECT_EQ(first_non_finite(converted(x, dtype), Masks::pass), 250001);
  }
  EXPECT_FALSE(first_non_finite(zeros({4}, DType::i64)));
  EXPECT_FALSE(first_non_finite(zeros({0}, DType::f32)));
}

// The loss of the batch that starts at `position` is `value`.
void spoil_batch_at(Patient& patient, int64_t position, float value) {
  const Objective objective = patient.training.objective;
  patient.training.batch = [position](int64_t at) {
    Batch batch = tiny_batch(at, 8);
    if (at == position) {
      batch.documents = zeros({1}, DType::i64);  // marks it
    }
    return batch;
  };
  patient.training.objective = [objective, value](const Batch& batch) {
    Loss loss = objective({batch.ids, batch.labels, {}});
    loss.sum = batch.documents ? planted(loss.sum, 0, value) : loss.sum;
    return loss;
  };
}

TEST(NonFinite, SkippingTakesTheNextBatchAndSaysSo) {
  Patient patient(4);
  spoil_batch_at(patient, 8, nan_value);
  patient.training.numbers.non_finite = "skip";
  Reports reports;
  patient.training.observers = {&reports};
  ::testing::internal::CaptureStderr();
  train(patient.state, patient.training);
  const std::string warned = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(patient.state.step, 4);
  EXPECT_EQ(patient.state.position, 5 * 8);
  ASSERT_EQ(reports.all[1].events.size(), 1u);
  EXPECT_THAT(reports.all[1].events[0], HasSubstr("skipped samples 8 to 15: the loss is nan"));
  EXPECT_EQ(reports.all[1].batches[0].sample, 16);
  EXPECT_THAT(warned, HasSubstr("warning: step 2: skipped samples 8 to 15"));

  // As if the batch had never been there.
  Patient clean(4);
  clean.training.batch = [](int64_t at) { return tiny_batch(at < 8 ? at : at + 8, 8); };
  train(clean.state, clean.training);
  for (const auto& [name, p] : clean.model->parameters()) {
    EXPECT_EQ(first_non_finite(p), std::nullopt);
    const Tensor other = patient.model->parameters().at(name);
    EXPECT_TRUE(std::equal(p.values<float>().begin(), p.values<float>().end(),
                           other.values<float>().begin()))
        << name;
  }
}

TEST(NonFinite, TooManySkippedBatchesInARowHalt) {
  Patient patient(4);
  plant_in_layer(patient, 0, 0, nan_value);
  patient.training.numbers.non_finite = "skip";
  patient.training.numbers.skips = 2;
  ::testing::internal::CaptureStderr();
  const std::string message = halt_message(patient);
  ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(message, AllOf(HasSubstr("step 1: the loss is nan, samples from 16, after 2 skipped "
                                       "batches in a row: "),
                             HasSubstr("planted in layers.0")));
  EXPECT_EQ(patient.state.position, 0);
}

// Gradients above 1e30 become infinite, as they do in f16 above 65504.
TEST(NonFinite, AnOverflowLowersTheLossScaleAndRepeatsTheSameBatch) {
  Patient patient(3);
  patient.training.loss_unit = 128;
  patient.state.loss_scale.scale = 1024;
  const Objective objective = patient.training.objective;
  patient.training.objective = [objective](const Batch& batch) {
    Loss loss = objective(batch);
    loss.sum = record("narrow", copy_of(loss.sum), wrt(loss.sum, [](const Tensor& dy) {
                        return dy.item() > 2 ? full({}, 1.0 / 0.0, DType::f32) : dy;
                      }));
    return loss;
  };
  Reports reports;
  patient.training.observers = {&reports};
  train(patient.state, patient.training);
  EXPECT_EQ(patient.state.loss_scale.scale, 256);  // 1024 / 128 = 8 → 4 → 2
  EXPECT_EQ(patient.state.loss_scale.counter, 3);
  EXPECT_EQ(patient.state.position, 24);
  ASSERT_EQ(reports.all[0].events.size(), 2u);
  EXPECT_EQ(reports.all[0].events[1], "gradients overflowed, the loss scale is now 256");
  EXPECT_TRUE(reports.all[1].events.empty());

  // The scale is a power of two: in f32 the updates are those without it.
  Patient plain(3);
  train(plain.state, plain.training);
  for (const auto& [name, p] : plain.model->parameters()) {
    const Tensor other = patient.model->parameters().at(name);
    EXPECT_TRUE(std::equal(p.values<float>().begin(), p.values<float>().end(),
                           other.values<float>().begin()))
        << name;
  }
}

TEST(NonFinite, AScaleAtItsFloorHalts) {
  Patient patient(3);
  patient.training.loss_unit = 1;
  patient.state.loss_scale.scale = 4;
  patient.model->layers[0]->wrap([](const nn::Block::Run& run, const Tensor& x) {
    TensorList ys = run(x);
    ys.front() = bad_gradient(ys.front(), 0);
    return ys;
  });
  EXPECT_THAT(halt_message(patient), HasSubstr("the backward of sharp"));
  EXPECT_EQ(patient.state.loss_scale.scale, 4);  // nothing happened
}

}  // namespace
}  // namespace ingot::testing
