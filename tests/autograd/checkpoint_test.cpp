#include "ingot/autograd/checkpoint.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

struct Outcome {
  Tensor dx;
  Tensor dw;
  int64_t peak;  // bytes above what was live before
};

// Twelve blocks x → softmax(silu(x w) + tanh(x)) · x, with or without their activations kept.
Outcome run_blocks(bool recompute, DType dtype = DType::f64) {
  Tensor x = cast(random_tensor({64, 128}, 1), dtype);
  Tensor w = cast(random_tensor({128}, 2), dtype);
  require_grad(x);
  require_grad(w);
  const auto block = [&w](const Tensor& in) { return softmax(silu(in * w) + tanh(in)) * in; };
  Allocator& memory = allocator(cpu_device);
  memory.reset_peak();
  const int64_t before = memory.stats().live_total;
  Tensor y = x;
  for (int i = 0; i < 12; ++i) {
    y = recompute ? recomputed(block, y) : block(y);
  }
  Tensor loss = sum(y);
  y = Tensor();
  backward(loss);
  return {grad(x), grad(w), memory.stats().peak_total - before};
}

TEST(Recomputed, GivesTheSameGradientsInLessMemory) {
  const Outcome kept = run_blocks(false);
  const Outcome again = run_blocks(true);
  EXPECT_TRUE(same_bits(kept.dx, again.dx));
  EXPECT_TRUE(same_bits(kept.dw, again.dw));
  EXPECT_LT(again.peak, kept.peak / 2) << "kept: " << kept.peak;
}

TEST(Recomputed, PassesGradientsOnInTheTypeOfTheActivations) {
  const Outcome kept = run_blocks(false, DType::bf16);
  const Outcome again = run_blocks(true, DType::bf16);
  EXPECT_TRUE(same_bits(kept.dx, again.dx));
  // One w serves twelve blocks; kept histories add its twelve parts in bf16, recomputed ones in
  // f32: 2.3e-3 found.
  EXPECT_LE(normwise_error(again.dw, kept.dw), 1e-2);
}

TEST(Recomputed, RunsOnceWhenNothingNeedsAGradient) {
  int runs = 0;
  const auto block = [&runs](const Tensor& in) {
    ++runs;
    return exp(in);
  };
  const Tensor x = random_tensor({3}, 1);
  EXPECT_TRUE(same_bits(recomputed(block, x), exp(x)));
  EXPECT_EQ(runs, 1);
  Tensor wanted = copy_of(x);
  require_grad(wanted);
  backward(sum(recomputed(block, wanted)));
  EXPECT_EQ(runs, 3);  // forward, and again in the backward
  EXPECT_LE(difference(grad(wanted), exp(x)), 1e-15);
}

TEST(Recomputed, DoesNotTouchTheModeOfItsCaller) {
  Tensor x = random_tensor({3}, 1);
  require_grad(x);
  backward(sum(recomputed([](const Tensor& in) { return square(in); }, x)));
  EXPECT_TRUE(recording());
}

}  // namespace
}  // namespace ingot::testing
