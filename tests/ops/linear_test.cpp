#include "ingot/ops/linear.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/allocator.h"
#include "ingot/device/flops.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// y[…, o] = Σ_i x[…, i] W[o, i] + b[o].
Tensor by_definition(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t in = weight.size(1);
  const int64_t out = weight.size(0);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = out;
  Tensor y = zeros(shape, DType::f64);
  const double* from = x.values<double>().data();
  const double* w = weight.values<double>().data();
  double* to = y.mutable_values<double>().data();
  for (int64_t i = 0; i < y.elements(); ++i) {
    to[i] = bias.defined() ? bias.values<double>()[static_cast<size_t>(i % out)] : 0;
    for (int64_t k = 0; k < in; ++k) {
      to[i] += from[i / out * in + k] * w[i % out * in + k];
    }
  }
  return y;
}

Tensor or_undefined(const TensorList& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }

std::vector<Sample> samples() {
  return {
      {"odd sizes",
       {random_tensor({3, 5, 7}, 1), random_tensor({11, 7}, 2), random_tensor({11}, 3)}},
      {"no bias", {random_tensor({6, 9}, 4), random_tensor({4, 9}, 5)}},
      {"one row", {random_tensor({1, 35}, 6), random_tensor({18, 35}, 7), random_tensor({18}, 8)}},
      {"a vector", {random_tensor({20}, 9), random_tensor({3, 20}, 10), random_tensor({3}, 11)}},
      {"size 1", {random_tensor({2, 1}, 12), random_tensor({1, 1}, 13), random_tensor({1}, 14)}},
      {"no rows", {random_tensor({0, 4}, 15), random_tensor({3, 4}, 16), random_tensor({3}, 17)}},
      {"no inputs", {random_tensor({2, 0}, 18), random_tensor({3, 0}, 19), random_tensor({3}, 20)}},
  };
}

TEST(Linear, PassesItsCase) {
  OpCase op;
  op.name = "linear";
  op.run = [](const TensorList& x) { return TensorList{linear(x[0], x[1], or_undefined(x, 2))}; };
  op.reference = [](const TensorList& x) {
    return TensorList{by_definition(x[0], x[1], or_undefined(x, 2))};
  };
  op.samples = samples();
  op.twice = true;
  op.refusals = {
      {[] {
         linear(zeros({2, 2}, DType::i64), zeros({2, 2}, DType::i64));
       },
       "linear: takes floating-point tensors: got i64"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({4, 5}, DType::f32));
       },
       "linear: inner dimensions differ: x is [2, 3], weight is [4, 5]"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({3}, DType::f32));
       },
       "linear: takes x [..., In] and weight [Out, In]: x is [2, 3], weight is [3]"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({4, 3}, DType::bf16));
       },
       "linear: dtypes differ: x is f32, weight is bf16"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({4, 3}, DType::f32), zeros({3}, DType::f32));
       },
       "linear: bias has not one element a row of weight: bias is [3], weight is [4, 3]"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({4, 3}, DType::f32), zeros({4}, DType::bf16));
       },
       "linear: dtypes differ: bias is bf16, weight is f32"},
      {[] {
         linear(zeros({2, 3}, DType::f32), zeros({4, 3}, DType::f32, meta_device));
       },
       "linear: devices differ: x is on cpu, weight is on meta"},
  };
  check_op(op);
}

TEST(Linears, PassTheirCase) {
  OpCase op;
  op.name = "linears";
  op.run = [](const TensorList& x) {
    return linears(x[0], {x[1], x[2], x[3]}, {x[4], Tensor(), x[5]});
  };
  op.reference = [](const TensorList& x) {
    return TensorList{by_definition(x[0], x[1], x[4]), by_definition(x[0], x[2], {}),
                      by_definition(x[0], x[3], x[5])};
  };
  op.samples = {{"three of different widths",
                 {random_tensor({2, 3, 9}, 1), random_tensor({5, 9}, 2), random_tensor({2, 9}, 3),
                  random_tensor({7, 9}, 4), random_tensor({5}, 5), random_tensor({7}, 6)}},
                {"no rows",
                 {random_tensor({0, 9}, 1), random_tensor({5, 9}, 2), random_tensor({2, 9}, 3),
                  random_tensor({7, 9}, 4), random_tensor({5}, 5), random_tensor({7}, 6)}}};
  op.twice = true;
  op.refusals = {
      {[] {
         linears(zeros({2, 3}, DType::f32), {zeros({4, 3}, DType::f32)}, {Tensor(), Tensor()});
       },
       "linears: takes no biases or one a weight: 1 weights, 2 biases"}};
  check_op(op);
}

TEST(Linear, GivesGradientsOfHalfWeightsInF32AndOfInputsInTheirType) {
  Tensor x = normal({6, 8}, 0, 1, {1, 0, 0}, DType::bf16);
  Tensor weight = normal({5, 8}, 0, 1, {2, 0, 0}, DType::bf16);
  Tensor bias = normal({5}, 0, 1, {3, 0, 0}, DType::bf16);
  for (Tensor* leaf : {&x, &weight, &bias}) {
    require_grad(*leaf);
  }
  const Tensor y = linear(x, weight, bias);
  const TensorList found = gradients({y}, {x, weight, bias}, {full(y.shape(), 1, DType::bf16)});
  EXPECT_EQ(found[0].dtype(), DType::bf16);
  EXPECT_EQ(found[1].dtype(), DType::f32);
  EXPECT_EQ(found[2].dtype(), DType::f32);
  // 2⁻⁸ cannot be added to 256 in bf16; the f32 sum keeps it.
  Tensor tall = full({257, 1}, 1, DType::bf16);
  Tensor one = full({1, 1}, 1, DType::bf16);
  require_grad(one);
  const Tensor z = linear(tall, one);
  EXPECT_EQ(gradients({z}, {one}, {full(z.shape(), 1.0 / 256, DType::bf16)})[0].item(),
            257.0 / 256);
}

TEST(Linear, CountsTwoOperationsATermInEachOfItsThreeProducts) {
  for (const Device device : {cpu_device, meta_device}) {
    Tensor x = zeros({3, 4, 5}, DType::bf16, device);
    Tensor weight = zeros({6, 5}, DType::bf16, device);
    require_grad(x);
    require_grad(weight);
    reset_flops();
    const Tensor y = linear(x, weight);
    EXPECT_EQ(counted_flops(), 2 * 12 * 5 * 6);
    backward(y, zeros({3, 4, 6}, DType::bf16, device));
    EXPECT_EQ(counted_flops(), 3 * 2 * 12 * 5 * 6);
  }
}

TEST(Linears, AnUnusedResultSendsNoGradient) {
  Tensor x = random_tensor({2, 3}, 1);
  Tensor first = random_tensor({4, 3}, 2);
  Tensor second = random_tensor({4, 3}, 3);
  for (Tensor* leaf : {&x, &first, &second}) {
    require_grad(*leaf);
  }
  const TensorList ys = linears(x, {first, second});
  const Tensor dy = random_tensor({2, 4}, 4);
  const TensorList found = gradients({ys[1]}, {x, first, second}, {dy});
  EXPECT_FALSE(found[1].defined());
  const Tensor alone = linear(x, second);
  const TensorList expected = gradients({alone}, {x, second}, {dy});
  EXPECT_TRUE(same_bits(found[0], expected[0]));
  EXPECT_TRUE(same_bits(found[2], expected[1]));
}

// The most memory that was in use while `work` ran, above what was before.
int64_t peak_above(const std::function<void()>& work) {
  Allocator& memory = allocator(cpu_device);
  memory.reset_peak();
  const int64_t before = memory.stats().live_total;
  work();
  return memory.stats().peak_total - before;
}

TEST(Linear, ASecondBackwardAddsToTheWeightsGradientInPlace) {
  Tensor weight = converted(random_tensor({64, 96}, 1), DType::f32);
  require_grad(weight);
  const Tensor x = converted(random_tensor({8, 96}, 2), DType::f32);
  const Tensor dy = converted(random_tensor({8, 64}, 3), DType::f32);
  backward(linear(x, weight), dy);
  const Tensor once = copy_of(grad(weight));
  const int64_t peak = peak_above([&] { backward(linear(x, weight), dy); });
  EXPECT_LT(peak, grad(weight).bytes());  // no second gradient was made
  for (int64_t i = 0; i < once.elements(); ++i) {
    const float half = once.values<float>()[static_cast<size_t>(i)];
    EXPECT_FLOAT_EQ(grad(weight).values<float>()[static_cast<size_t>(i)], 2 * half);
  }
}

TEST(Linear, AddsToAGradientThatSomebodyHoldsInACopy) {
  Tensor weight = random_tensor({3, 4}, 1);
  require_grad(weight);
  const Tensor x = random_tensor({2, 4}, 2);
  const Tensor dy = random_tensor({2, 3}, 3);
  backward(linear(x, weight), dy);
  const Tensor held = grad(weight);
  const Tensor before = copy_of(held);
  backward(linear(x, weight), dy);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(held.values<double>()[i], before.values<double>()[i]);
    EXPECT_DOUBLE_EQ(grad(weight).values<double>()[i], 2 * before.values<double>()[i]);
  }
}

TEST(Linear, AWeightUsedTwiceCollectsBothGradientsInPlace) {
  Tensor weight = random_tensor({4, 4}, 1);
  require_grad(weight);
  const Tensor x = random_tensor({2, 4}, 2);
  const Tensor once = linear(x, weight);
  const Tensor y = linear(once, weight);
  backward(y, full({2, 4}, 1, DType::f64));
  // dW = dyᵀ (x Wᵀ) + (dy W)ᵀ x, by loops.
  const auto w = [&](size_t o, size_t i) { return weight.values<double>()[o * 4 + i]; };
  for (size_t o = 0; o < 4; ++o) {
    for (size_t i = 0; i < 4; ++i) {
      double expected = 0;
      for (size_t row = 0; row < 2; ++row) {
        expected += once.values<double>()[row * 4 + i];
        for (size_t k = 0; k < 4; ++k) {
          expected += w(k, o) * x.values<double>()[row * 4 + i];
        }
      }
      EXPECT_NEAR(grad(weight).values<double>()[o * 4 + i], expected, 1e-12);
    }
  }
}

TEST(Linear, CountsTheFlopsThatANaiveLoopPerforms) {
  const Tensor x = random_tensor({3, 5}, 1);
  const Tensor weight = random_tensor({4, 5}, 2);
  int64_t performed = 0;
  double total = 0;
  for (size_t row = 0; row < 3; ++row) {
    for (size_t o = 0; o < 4; ++o) {
      for (size_t i = 0; i < 5; ++i) {
        total += x.values<double>()[row * 5 + i] * weight.values<double>()[o * 5 + i];
        performed += 2;  // a product and an addition
      }
    }
  }
  reset_flops();
  const Tensor y = linear(x, weight);
  EXPECT_EQ(counted_flops(), performed);
  EXPECT_NEAR(sum(y).item(), total, 1e-12);
}

}  // namespace
}  // namespace ingot::testing
