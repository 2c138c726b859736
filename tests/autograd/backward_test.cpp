#include "ingot/autograd/backward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/gradcheck.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor leaf(const Tensor& values) {
  Tensor x = copy_of(values);
  return require_grad(x);
}
Tensor leaf(double value) { return leaf(scalar(value, DType::f64)); }

double slope(const Tensor& y, const Tensor& x) {
  return gradients({y}, {x}, {scalar(1, DType::f64)})[0].item();
}

TEST(Backward, FollowsTheChainRule) {
  const double at = 0.7;
  const Tensor x = leaf(at);
  const double inner = std::exp(at * at);
  EXPECT_NEAR(slope(sin(exp(square(x))), x), std::cos(inner) * inner * 2 * at, 1e-12);
}

TEST(Backward, SumsOverTheBranchesOfAGraph) {
  // f = (a b + sin a) / b with a = e^x, b = 1 + x²: six operations, x and both a and b used twice.
  const double at = 0.4;
  const Tensor x = leaf(at);
  const Tensor a = exp(x);
  const Tensor b = 1.0 + square(x);
  const double va = std::exp(at);
  const double vb = 1 + at * at;
  const double da = 1 + std::cos(va) / vb;      // ∂f/∂a
  const double db = -std::sin(va) / (vb * vb);  // ∂f/∂b
  EXPECT_NEAR(slope((a * b + sin(a)) / b, x), da * va + db * 2 * at, 1e-12);
}

TEST(Backward, SumsWhereATensorIsUsedTwice) {
  const Tensor x = leaf(3);
  EXPECT_DOUBLE_EQ(slope(x * x, x), 6);
  const Tensor y = leaf(3);
  EXPECT_DOUBLE_EQ(slope(y + y, y), 2);
}

TEST(Backward, VisitsADiamondOnce) {
  const Tensor x = leaf(2);
  const Tensor top = square(x);
  int arrivals = 0;
  on_grad(top, [&](Tensor& dy) {
    ++arrivals;
    EXPECT_DOUBLE_EQ(dy.item(), 3 + 8);  // both sides are in: 3 + 2 · top
  });
  const Tensor y = top * 3.0 + square(top);
  EXPECT_DOUBLE_EQ(slope(y, x), 11 * 4);
  EXPECT_EQ(arrivals, 1);
}

TEST(Backward, JoinsTheResultsOfOneOperation) {
  const Tensor x = leaf(random_tensor({6}, 1));
  const TensorList parts = split(x, {1, 2, 3});
  backward(sum(parts[0]) + sum(parts[2] * 5.0));
  EXPECT_EQ(difference(grad(x), tensor_of(std::vector<double>{1, 0, 0, 5, 5, 5}, {6})), 0);
}

TEST(Backward, AddsIntoLeavesUntilTheyAreCleared) {
  const Tensor x = leaf(2);
  EXPECT_FALSE(grad(x).defined());
  backward(square(x));
  backward(square(x));
  EXPECT_DOUBLE_EQ(grad(x).item(), 8);
  clear_grad(x);
  EXPECT_FALSE(grad(x).defined());
}

TEST(Backward, KeepsGradientsOfHalfPrecisionLeavesInF32) {
  Tensor x = full({3}, 1, DType::bf16);
  require_grad(x);
  for (int i = 0; i < 300; ++i) {
    backward(sum(x * 1.0));
  }
  EXPECT_EQ(grad(x).dtype(), DType::f32);
  EXPECT_EQ(difference(grad(x), full({3}, 300, DType::f64)), 0);  // bf16 would stop at 256
}

TEST(Backward, CountsGradientsOfLeavesAsGradients) {
  const auto live = [] {
    return allocator(cpu_device).stats().live[static_cast<size_t>(Purpose::gradients)];
  };
  const int64_t before = live();
  Tensor x = full({1000}, 1, DType::f32);
  require_grad(x);
  backward(sum(square(x)));
  EXPECT_EQ(live() - before, Allocator::counted(4000));
}

TEST(Gradients, TouchNoLeaf) {
  const Tensor x = leaf(2);
  const Tensor w = leaf(5);
  const TensorList found = gradients({x * w}, {x}, {scalar(1, DType::f64)});
  EXPECT_DOUBLE_EQ(found[0].item(), 5);
  EXPECT_FALSE(grad(x).defined());
  EXPECT_FALSE(grad(w).defined());
}

TEST(Gradients, AreUndefinedWhereNothingDepends) {
  const Tensor x = leaf(2);
  const Tensor other = leaf(5);
  EXPECT_FALSE(gradients({square(x)}, {other}, {scalar(1, DType::f64)})[0].defined());
}

TEST(Gradients, OfSeveralResultsAndAtIntermediateTensors) {
  const Tensor x = leaf(2);
  const Tensor middle = square(x);
  const TensorList found = gradients({middle * 3.0, exp(x)}, {middle, x},
                                     {scalar(1, DType::f64), scalar(2, DType::f64)});
  EXPECT_DOUBLE_EQ(found[0].item(), 3);
  EXPECT_DOUBLE_EQ(found[1].item(), 12 + 2 * std::exp(2));
}

TEST(Gradients, CanBeDifferentiatedAgain) {
  const Tensor x = leaf(3);
  const Tensor dx = gradients({x * x * x}, {x}, {scalar(1, DType::f64)}, CreateGraph::yes)[0];
  EXPECT_DOUBLE_EQ(dx.item(), 27);
  const Tensor ddx = gradients({dx}, {x}, {scalar(1, DType::f64)}, CreateGraph::yes)[0];
  EXPECT_DOUBLE_EQ(ddx.item(), 18);
  EXPECT_DOUBLE_EQ(slope(ddx, x), 6);
}

TEST(Gradients, OfAGradientPenaltyReachTheLeaves) {
  const Tensor x = leaf(random_tensor({4}, 1));
  const Tensor w = leaf(random_tensor({4}, 2));
  const Tensor dx =
      gradients({sum(tanh(x * w))}, {x}, {scalar(1, DType::f64)}, CreateGraph::yes)[0];
  backward(sum(square(dx)));
  EXPECT_TRUE(grad(w).defined());
  const auto penalty = [&](const TensorList& in) {
    const Tensor inner = detach(x);
    const Tensor y = tanh(inner * in[0]);
    return TensorList{sum(square((1.0 - square(y)) * in[0]))};  // the gradient by hand
  };
  const Tensor u = leaf(detach(w));
  EXPECT_LE(difference(grad(w), gradients({penalty({u})[0]}, {u}, {scalar(1, DType::f64)})[0]),
            1e-12);
}

TEST(Record, KeepsNothingUnderNoGrad) {
  const Tensor x = leaf(2);
  {
    const NoGrad quiet;
    EXPECT_FALSE(recording());
    EXPECT_EQ(square(x).node(), nullptr);
    const WithGrad again;
    EXPECT_NE(square(x).node(), nullptr);
  }
  EXPECT_TRUE(recording());
  EXPECT_EQ(square(scalar(1, DType::f64)).node(), nullptr);  // nothing needs a gradient
  EXPECT_EQ(square(detach(x)).node(), nullptr);
}

TEST(Record, SavesNothingForInputsWithoutGradient) {
  const Tensor x = leaf(random_tensor({1000}, 1));
  const auto live = [] { return allocator(cpu_device).stats().live_total; };
  const int64_t before = live();
  const Tensor y = x * random_tensor({1000}, 2);  // dy/dx needs the factor, which is kept
  EXPECT_EQ(live() - before, 2 * Allocator::counted(8000));
  const Tensor z = x + random_tensor({1000}, 3);  // dz/dx needs nothing
  EXPECT_EQ(live() - before, 3 * Allocator::counted(8000));
}

TEST(OnGrad, RunsWhenCompleteAndLatestFirst) {
  const Tensor first = leaf(2);
  const Tensor second = leaf(3);
  std::vector<std::string> seen;
  on_grad(first, [&](Tensor& g) { seen.push_back(concat("first ", g.item())); });
  on_grad(second, [&](Tensor& g) { seen.push_back(concat("second ", g.item())); });
  const Tensor y = square(first);
  on_grad(y, [&](Tensor& g) { seen.push_back(concat("y ", g.item())); });
  backward(y * second);
  EXPECT_EQ(seen, (std::vector<std::string>{"second 4", "y 3", "first 12"}));
}

TEST(OnGrad, MayChangeTheGradient) {
  const Tensor x = leaf(2);
  const Tensor y = square(x);
  on_grad(y, [](Tensor& dy) { dy = dy * 10.0; });
  backward(y);
  EXPECT_DOUBLE_EQ(grad(x).item(), 40);
}

TEST(Backward, RefusesWhatItCannotDo) {
  Tensor x = leaf(random_tensor({3}, 1));
  expect_error([&] { backward(square(x)); },
               "backward: the loss must have one element: got shape [3]");
  expect_error([&] { backward(scalar(1, DType::f64)); }, "backward: the tensor has no history");
  expect_error([&] { backward(square(x), scalar(1, DType::f64)); },
               "backward: shapes differ: y is [3], dy is []");
  expect_error([&] { grad(square(x)); }, "grad: the tensor is not a leaf");
  expect_error(
      [] {
        Tensor ints = zeros({2}, DType::i64);
        require_grad(ints);
      },
      "require_grad: only floating-point tensors have gradients: got i64");
  Tensor result = square(x);
  expect_error([&] { require_grad(result); },
               "the tensor is the result of 'square'; detach it first");
}

TEST(Backward, RefusesASecondWalkThroughASpentHistory) {
  const Tensor x = leaf(2);
  const Tensor y = square(x);
  const Tensor z = exp(y);
  backward(z);
  expect_error(
      [&] { backward(z); },
      "backward: the history of 'exp' was freed by an earlier backward; run the forward again");
  expect_error([&] { backward(y * 2.0); }, "the history of 'square' was freed");
}

TEST(Saved, RefusesATensorWrittenInPlaceSinceTheForward) {
  const Tensor x = leaf(random_tensor({3}, 1));
  Tensor factor = random_tensor({3}, 2);
  const Tensor y = sum(x * factor);
  fill(factor, 0);
  expect_error([&] { backward(y); },
               "it was written in place after the forward: version 1, saved at 0");
  const Tensor z = sum(x * factor);
  factor.fresh_view();  // filling what was just made is no such write
  backward(z);
  EXPECT_TRUE(grad(x).defined());
}

TEST(Saved, ErrorsNameTheOperation) {
  const Tensor x = leaf(random_tensor({3}, 1));
  Tensor factor = random_tensor({3}, 2);
  const Tensor y = sum(x * factor);
  fill(factor, 0);
  expect_error([&] { backward(y); }, "in the backward of 'mul'");
}

TEST(FirstOrderOnly, RefusesTheSecondDerivativeByName) {
  const Tensor x = leaf(2);
  const auto doubled = [](const Tensor& in) {
    return record("doubled", in * 1.0 + in, wrt(in, [](const Tensor& dy) {
                    return record("doubled backward", dy * 2.0,
                                  first_order_only("doubled backward", {dy}));
                  }));
  };
  const Tensor y = doubled(square(x));
  const Tensor dx = gradients({y}, {x}, {leaf(1)}, CreateGraph::yes)[0];
  expect_error([&] { gradients({dx}, {x}, {scalar(1, DType::f64)}); },
               "doubled backward: has no second derivative; build it from simpler operations");
}

TEST(Backward, ReturnsLiveMemoryToWhereItWas) {
  const Tensor x = leaf(random_tensor({100, 100}, 1));
  backward(sum(x));  // the leaf's gradient exists from here on
  const auto live = [] { return allocator(cpu_device).stats().live_total; };
  const int64_t before = live();
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = mean(softmax(silu(transpose(x) * 2.0) + exp(x)) * x);
    EXPECT_GT(live(), before);
    backward(loss);
    EXPECT_EQ(live() - before, Allocator::counted(8)) << "only the loss itself is left";
  }
  EXPECT_EQ(live(), before);
}

TEST(Backward, FreesAndWalksADeepChain) {
  const Tensor x = leaf(1);
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) {
    y = y + 1.0;
  }
  y = Tensor();  // 200,000 operations end here without recursion
  y = x;
  for (int i = 0; i < 200000; ++i) {
    y = y * 1.0;
  }
  backward(y);
  EXPECT_DOUBLE_EQ(grad(x).item(), 1);
}

TEST(Gradcheck, AcceptsARightDerivativeAndCatchesAWrongOne) {
  const auto f = [](double factor) {
    return [factor](const TensorList& x) {
      return TensorList{record("cube", x[0] * 0.0 + detach(x[0] * square(x[0])),
                               wrt(x[0], [factor, in = saved(x[0])](const Tensor& dy) {
                                 return dy * square(in()) * factor;
                               }))};
    };
  };
  const TensorList at = {random_tensor({5}, 1)};
  EXPECT_EQ(gradcheck(f(3), at), "");
  EXPECT_EQ(gradgradcheck(f(3), at), "");
  EXPECT_NE(gradcheck(f(3.001), at).find("input 0: analytic"), std::string::npos);
}

TEST(Gradgradcheck, CatchesAWrongSecondDerivative) {
  const auto f = [](const TensorList& x) {
    return TensorList{
        record("exp", detach(exp(x[0])), wrt(x[0], [](const Tensor& dy, const Tensor& y) {
                 return dy * detach(y);  // forgets that y depends on x
               }))};
  };
  const TensorList at = {random_tensor({5}, 1)};
  EXPECT_EQ(gradcheck(f, at), "");
  EXPECT_NE(gradgradcheck(f, at), "");
}

}  // namespace
}  // namespace ingot::testing
