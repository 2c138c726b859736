#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/autograd/watch.h"
#include "ingot/device/allocator.h"
#include "ingot/device/flops.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor some_labels(const Shape& shape, int64_t classes) {
  Tensor labels = empty(shape, DType::i64);
  auto values = labels.mutable_values<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 7 == 3 ? -100 : static_cast<int64_t>(5 * i) % classes;
  }
  return labels;
}

Sample sample(const char* about, const Shape& leading, int64_t features, int64_t classes) {
  Shape x = leading;
  x.push_back(features);
  return {about,
          {random_tensor(x, 1), random_tensor({classes, features}, 2, 0.5),
           some_labels(leading, classes)}};
}

TEST(LinearCrossEntropy, EqualsLinearThenCrossEntropyForEveryOption) {
  const std::vector<CrossEntropyOptions> all = {
      {},
      {.label_smoothing = 0.1},
      {.z_loss = 0.02},
      {.softcap = 3},
      {.label_smoothing = 0.2, .z_loss = 0.01, .softcap = 5}};
  for (const CrossEntropyOptions& options : all) {
    OpCase op;
    op.name = "linear_cross_entropy";
    op.run = [=](const TensorList& x) {
      return TensorList{linear_cross_entropy(x[0], x[1], x[2], options)};
    };
    op.reference = [=](const TensorList& x) {
      return TensorList{cross_entropy(linear(x[0], x[1]), x[2], Reduction::sum, options)};
    };
    op.samples = {sample("odd sizes", {3, 5}, 7, 37), sample("one row", {1}, 4, 9),
                  sample("no rows", {0}, 4, 9)};
    check_op(op);
  }
}

// Wide enough for several pieces, the last one shorter.
TEST(LinearCrossEntropy, JoinsItsPieces) {
  const Sample wide = sample("", {67}, 3, 150001);
  for (const DType dtype : {DType::f64, DType::f32}) {
    TensorList fused, composed;
    for (TensorList* grads : {&fused, &composed}) {
      Tensor x = converted(wide.inputs[0], dtype);
      Tensor weight = converted(wide.inputs[1], dtype);
      x = copy_of(x);
      weight = copy_of(weight);
      require_grad(x);
      require_grad(weight);
      const Tensor loss = grads == &fused
                              ? linear_cross_entropy(x, weight, wide.inputs[2])
                              : cross_entropy(linear(x, weight), wide.inputs[2], Reduction::sum);
      backward(loss, scalar(0.25, dtype));
      *grads = {detach(loss), grad(x), grad(weight)};
    }
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_LE(difference(fused[i], composed[i]), dtype == DType::f64 ? 1e-12 : 2e-6) << i;
    }
  }
}

// In several pieces, and without a change to the loss.
TEST(LinearCrossEntropy, ShowsTheLogSumsToWhoeverAsks) {
  struct Asking : Watch {
    void made(std::string_view, const TensorList&) override {}
    bool wants(std::string_view what) const override { return what == "logit sums"; }
    void shown(std::string_view, const TensorList& xs) override { seen.push_back(xs); }
    std::vector<TensorList> seen;
  };
  const Sample wide = sample("", {67}, 3, 150001);
  const TensorList& in = wide.inputs;
  const double expected = linear_cross_entropy(in[0], in[1], in[2]).item();
  Asking asking;
  EXPECT_EQ(linear_cross_entropy(in[0], in[1], in[2]).item(), expected);
  ASSERT_EQ(asking.seen.size(), 1u);
  const Tensor sums = converted(asking.seen[0][0], DType::f64);
  const Tensor log_sums = converted(logsumexp(linear(in[0], in[1]), -1), DType::f64);
  const auto labels = in[2].values<int64_t>();
  const auto parts = sums.values<double>();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != -100) {
      EXPECT_NEAR(parts[2 * i] + std::log(parts[2 * i + 1]), log_sums.values<double>()[i], 1e-5);
    }
  }
}

TEST(LinearCrossEntropy, NeverHoldsTheLogitsWhole) {
  constexpr int64_t rows = 4096, features = 8, classes = 16384;  // 268 MB of f32 logits
  for (const Device device : {cpu_device, meta_device}) {
    Tensor x = zeros({rows, features}, DType::f32, device);
    Tensor weight = zeros({classes, features}, DType::f32, device);
    const Tensor labels = zeros({rows}, DType::i64, device);
    require_grad(x);
    require_grad(weight);
    allocator(device).reset_peak();
    const int64_t before = allocator(device).stats().live_total;
    const Tensor loss = linear_cross_entropy(x, weight, labels);
    backward(loss);
    const int64_t peak = allocator(device).stats().peak_total - before;
    const int64_t gradients = 2 * x.bytes() + 2 * weight.bytes();
    EXPECT_LE(peak, (int64_t{33} << 20) + gradients) << device;
    EXPECT_LE(peak, rows * classes * 4 / 4) << device;
  }
}

TEST(LinearCrossEntropy, HandsTheWeightGradientOverWithoutACopy) {
  Tensor x = converted(random_tensor({33, 16}, 1), DType::bf16);
  Tensor weight = converted(random_tensor({2000, 16}, 2), DType::bf16);
  require_grad(x);
  require_grad(weight);
  for (const double dy : {1.0, 0.5}) {
    clear_grad(x);
    clear_grad(weight);
    const Tensor loss = linear_cross_entropy(x, weight, some_labels({33}, 2000));
    allocator(cpu_device).reset_peak();
    const int64_t before = allocator(cpu_device).stats().live_total;
    backward(loss, scalar(dy, DType::f32));
    EXPECT_LT(allocator(cpu_device).stats().peak_total - before, 2000 * 16 * 4) << dy;
    EXPECT_EQ(grad(weight).dtype(), DType::f32);
    EXPECT_EQ(allocator(cpu_device).stats().live_total - before,
              Allocator::counted(33 * 16 * 4) - Allocator::counted(33 * 16 * 2));
  }
}

TEST(LinearCrossEntropy, ScalesTheGradientsByDy) {
  const Sample one = sample("", {11}, 6, 29);
  TensorList grads[2];
  for (const int twice : {0, 1}) {
    Tensor x = detach(one.inputs[0]);
    Tensor weight = detach(one.inputs[1]);
    require_grad(x);
    require_grad(weight);
    const Tensor loss = linear_cross_entropy(x, weight, one.inputs[2]);
    grads[twice] = gradients({loss}, {x, weight}, {scalar(1 + twice, DType::f64)});
  }
  EXPECT_LE(difference(grads[1][0], grads[0][0] * 2.0), 1e-15);
  EXPECT_LE(difference(grads[1][1], grads[0][1] * 2.0), 1e-15);
}

TEST(LinearCrossEntropy, RefusesASecondDerivative) {
  const Sample one = sample("", {11}, 6, 29);
  Tensor x = detach(one.inputs[0]);
  require_grad(x);
  const Tensor loss = linear_cross_entropy(x, one.inputs[1], one.inputs[2]);
  const Tensor dx = gradients({loss}, {x}, {scalar(1, DType::f64)}, CreateGraph::yes)[0];
  expect_error([&] { gradients({dx}, {x}, {dx}); },
               "linear_cross_entropy: has no second derivative");
}

TEST(LinearCrossEntropy, CountsItsProducts) {
  Tensor x = zeros({6, 4}, DType::f32, meta_device);
  Tensor weight = zeros({10, 4}, DType::f32, meta_device);
  const Tensor labels = zeros({6}, DType::i64, meta_device);
  reset_flops();
  linear_cross_entropy(x, weight, labels);
  EXPECT_EQ(counted_flops(), 2 * 6 * 4 * 10);
  require_grad(x);
  require_grad(weight);
  reset_flops();
  linear_cross_entropy(x, weight, labels);
  EXPECT_EQ(counted_flops(), 3 * 2 * 6 * 4 * 10);
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({3, 4}, DType::f32);
  const Tensor labels = zeros({3}, DType::i64);
  expect_error(
      [&] {
        linear_cross_entropy(x, zeros({5, 3}, DType::f32), labels);
      },
      "linear_cross_entropy: weight must be [classes, features]: x is [3, 4], weight is "
      "[5, 3]");
  expect_error(
      [&] {
        linear_cross_entropy(x, zeros({5, 4}, DType::bf16), labels);
      },
      "linear_cross_entropy: takes floating-point tensors of one type: x is f32, weight "
      "is bf16");
  expect_error(
      [&] {
        linear_cross_entropy(x, zeros({5, 4}, DType::f32), full({3}, 5, DType::i64));
      },
      "linear_cross_entropy: label 5 at position 0 is outside [0, 5)");
  expect_error(
      [&] {
        linear_cross_entropy(x, zeros({5, 4}, DType::f32), zeros({2}, DType::i64));
      },
      "linear_cross_entropy: needs one label a row: x is [3, 4], labels are [2]");
}

TEST(LinearLogProbability, PassesItsCase) {
  for (const double cap : {0.0, 2.0}) {
    const LogProbabilityOptions options{.softcap = cap, .ignore_index = -100};
    OpCase op;
    op.name = "linear_log_probability";
    op.run = [=](const TensorList& x) {
      return TensorList{linear_log_probability(x[0], x[1], x[2], options)};
    };
    op.reference = [=](const TensorList& x) {
      return TensorList{
          -cross_entropy(linear(x[0], x[1]), x[2], Reduction::none, {.softcap = cap})};
    };
    op.samples = {sample("odd sizes", {3, 5}, 7, 37), sample("one row", {1}, 4, 9),
                  sample("no rows", {0}, 4, 9)};
    check_op(op);
  }
}

TEST(LinearLogProbability, CountsEveryLabelUnlessToldWhichToIgnore) {
  const Tensor x = random_tensor({3, 5, 7}, 1);
  const Tensor weight = random_tensor({37, 7}, 2);
  const Tensor labels = some_labels({3, 5}, 37);
  expect_error([&] { linear_log_probability(x, weight, labels); },
               "linear_log_probability: label -100 at position 3 is outside [0, 37)");
  const Tensor got = linear_log_probability(x, weight, labels, {.ignore_index = -100});
  EXPECT_EQ(got.shape(), (Shape{3, 5}));
  EXPECT_EQ(got.values<double>()[3], 0);
}

// Each row's gradient is its own dy times (onehot − p), which a sum's backward cannot give.
TEST(LinearLogProbability, WeighsEveryRowByItsOwnGradientOverSeveralPieces) {
  const Sample wide = sample("", {67}, 3, 150001);
  const Tensor dy = random_tensor({67}, 9);
  const auto gradients_of = [&](const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
    Tensor x = copy_of(wide.inputs[0]);
    Tensor weight = copy_of(wide.inputs[1]);
    backward(f(require_grad(x), require_grad(weight)), dy);
    return TensorList{grad(x), grad(weight)};
  };
  const TensorList got = gradients_of([&](const Tensor& x, const Tensor& weight) {
    return linear_log_probability(x, weight, wide.inputs[2], {.ignore_index = -100});
  });
  const TensorList expected = gradients_of([&](const Tensor& x, const Tensor& weight) {
    return -cross_entropy(linear(x, weight), wide.inputs[2], Reduction::none);
  });
  EXPECT_LE(difference(got[0], expected[0]), 1e-12);
  EXPECT_LE(difference(got[1], expected[1]), 1e-12);
}

TEST(LinearLogProbability, HoldsNoMoreLogitsThanAPiece) {
  constexpr int64_t rows = 1024, classes = 50000;
  Tensor x = empty({rows, 64}, DType::f32, meta_device);
  Tensor weight = empty({classes, 64}, DType::f32, meta_device);
  const Tensor labels = empty({rows}, DType::i64, meta_device);
  Allocator& memory = allocator(meta_device);
  const int64_t before = memory.stats().live_total;
  memory.reset_peak();
  const Tensor y = linear_log_probability(require_grad(x), require_grad(weight), labels);
  backward(y, empty(y.shape(), y.dtype(), meta_device));
  EXPECT_LT(memory.stats().peak_total - before, int64_t{rows} * classes * 4 / 2);
}

}  // namespace
}  // namespace ingot::testing
