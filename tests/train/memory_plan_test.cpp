#include "ingot/train/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

Batch shapes(int64_t rows) {
  return {
      empty({rows, 16}, DType::i64, meta_device), empty({rows, 16}, DType::i64, meta_device), {}};
}

TEST(MemoryPlan, CountsWhatLivesAtTheSameTime) {
  const Plan plan = plan_of([] {
    { const Tensor a = empty({1024}, DType::f32, meta_device); }
    const Tensor b = empty({512}, DType::f32, meta_device);
    const PurposeScope scope(Purpose::optimizer);
    const Tensor c = empty({256}, DType::f32, meta_device);
  });
  EXPECT_EQ(plan.memory.peak_total, 4096);
  EXPECT_EQ(plan.memory.at_peak[static_cast<size_t>(Purpose::activations)], 4096);
  EXPECT_EQ(plan.memory.live_total, 0);
  EXPECT_EQ(plan.flops, 0);
}

TEST(MemoryPlan, AnEarlierPeakDoesNotCount) {
  plan_of([] { empty({1 << 20}, DType::f32, meta_device); });
  EXPECT_EQ(plan_of([] { empty({16}, DType::f32, meta_device); }).memory.peak_total, 64);
}

// A step of the same model on memory and on the meta device: the same peak, byte for byte.
TEST(MemoryPlan, IsThePeakOfTheStepItself) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t accumulate : {1, 4}) {
      const auto run = [&](Device device) {
        allocator(device).reset_peak();
        const int64_t before = allocator(device).stats().live_total;
        Decoder model(tiny_config(0.1), dtype, device);
        if (device.kind != DeviceKind::meta) {
          nn::initialise(model, {"normal", 0.2}, 3);
        }
        model.require_gradients();
        Optimizer optimizer = make_optimizer({}, model.parameters());
        Training training = tiny_training(model, optimizer, 2, accumulate);
        allocator(device).reset_peak();
        if (device.kind == DeviceKind::meta) {
          training.batch = [=](int64_t) { return shapes(8 / accumulate); };
          training.objective = [&](const Batch& batch) {
            Loss loss;
            loss.sum =
                linear_cross_entropy(model.hidden(batch.ids), model.output_weight(), batch.labels);
            loss.count = 1;
            return loss;
          };
        }
        TrainState state;
        train(state, training);
        return allocator(device).stats().peak_total - before;
      };
      EXPECT_EQ(run(cpu_device), run(meta_device)) << name(dtype) << ", accumulate " << accumulate;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
