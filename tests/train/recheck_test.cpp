#include "ingot/train/recheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message.h"
#include "tests/train/faults.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Recheck, HealthyMachinesPassAndNothingChanges) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Patient plain(4, 2, dtype), guarded(4, 2, dtype);
    guarded.training.numbers.recheck = 1;
    guarded.training.numbers.seal = 1;
    Reports expected, found;
    plain.training.observers = {&expected};
    guarded.training.observers = {&found};
    train(plain.state, plain.training);
    train(guarded.state, guarded.training);
    EXPECT_EQ(found.losses(), expected.losses());
    EXPECT_EQ(guarded.state.position, plain.state.position);
  }
}

// One bit of one gradient is wrong in one of all computations.
TEST(Recheck, AFlippedBitInAGradientIsFoundAndNamed) {
  Patient patient(6);
  patient.training.numbers.recheck = 2;
  int backwards = 0;
  on_grad(patient.model->parameters().at("layers.1.mlp.up.weight"), [&](Tensor& g) {
    if (++backwards == 5) {  // steps 1, 2 twice, 3, then the first of step 4
      flip_bit(g, 11, 0);
    }
  });
  const std::string message =
      message_of(ErrorKind::numeric, [&] { train(patient.state, patient.training); });
  EXPECT_THAT(message, AllOf(HasSubstr("step 4: computed twice, the gradient of "
                                       "layers.1.mlp.up.weight differs: its hash is "),
                             HasSubstr("memory or a processor of this machine is at fault")));
  EXPECT_EQ(patient.state.step, 3);
}

TEST(Recheck, AFlippedBitInTheLossIsFound) {
  EXPECT_EQ(message_of(ErrorKind::numeric, [] { check_recomputed(3, 1.5, 1.25, {}, {}); }),
            "step 3: computed twice, the loss differs: it is 1.5, then 1.25; memory or a processor "
            "of this machine is at fault: resume from the newest checkpoint on another one");
}

// Flips a bit of a tensor after a step, as memory might.
struct Flip : Observer {
  int64_t step;
  Tensor x;
  int bit;
  Flip(int64_t step_, Tensor x_, int bit_) : step(step_), x(std::move(x_)), bit(bit_) {}
  void after_step(const TrainState& state, const StepReport&) override {
    if (state.step == step) {
      flip_bit(x, 3, bit);
    }
  }
};

TEST(Seal, AFlippedBitInAWeightIsFoundAndNamed) {
  for (const int bit : {0, 13, 31}) {
    Patient patient(6);
    patient.training.numbers.seal = 1;
    Flip flip(4, patient.model->parameters().at("layers.0.attention.wq.weight"), bit);
    patient.training.observers = {&flip};
    EXPECT_THAT(message_of(ErrorKind::numeric, [&] { train(patient.state, patient.training); }),
                HasSubstr("step 5: layers.0.attention.wq.weight is not what the update of step 4 "
                          "left: its hash is "));
    EXPECT_EQ(patient.state.step, 4);
  }
}

TEST(Seal, AFlippedBitInAMomentIsFoundAndNamed) {
  Patient patient(6, 1, DType::bf16);
  patient.training.numbers.seal = 1;
  Flip flip(2, patient.optimizer.state().at("adamw.v/embedding.weight"), 5);
  patient.training.observers = {&flip};
  EXPECT_THAT(message_of(ErrorKind::numeric, [&] { train(patient.state, patient.training); }),
              HasSubstr("step 3: adamw.v/embedding.weight is not what the update of step 2 left"));
}

}  // namespace
}  // namespace ingot::testing
