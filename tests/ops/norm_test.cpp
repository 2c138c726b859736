#include "ingot/ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

constexpr double eps = 1e-5;

// Row by row, as the formula reads; without `centered`, rms_norm.
Tensor norm_by_formula(const Tensor& x, const Tensor& weight, const Tensor& bias, bool centered) {
  Tensor y = empty(x.shape(), DType::f64);
  const auto in = x.values<double>();
  auto out = y.mutable_values<double>();
  const auto size = static_cast<size_t>(x.size(-1));
  for (size_t row = 0; row + size <= in.size() && size > 0; row += size) {
    double mean = 0;
    for (size_t i = 0; centered && i < size; ++i) {
      mean += in[row + i] / static_cast<double>(size);
    }
    double square = 0;
    for (size_t i = 0; i < size; ++i) {
      square += (in[row + i] - mean) * (in[row + i] - mean) / static_cast<double>(size);
    }
    for (size_t i = 0; i < size; ++i) {
      const double normed = (in[row + i] - mean) / std::sqrt(square + eps);
      out[row + i] = normed * (weight.defined() ? weight.values<double>()[i] : 1) +
                     (bias.defined() ? bias.values<double>()[i] : 0);
    }
  }
  return y;
}

Tensor added(const Tensor& a, const Tensor& b) {
  Tensor sum = copy_of(a);
  add_into(sum, b);
  return sum;
}

std::vector<Sample> samples(size_t rows, size_t vectors) {
  const auto sample = [&](const char* about, const Shape& shape, double deviation) {
    Sample made{about, {}};
    for (size_t i = 0; i < rows; ++i) {
      made.inputs.push_back(random_tensor(shape, 10 + i, deviation));
    }
    for (size_t i = 0; i < vectors; ++i) {
      made.inputs.push_back(random_tensor({shape.size(-1)}, 20 + i));
    }
    return made;
  };
  return {sample("several rows, odd size", {3, 5, 37}, 1), sample("one row", {70}, 1),
          sample("many rows", {300, 33}, 3), sample("no rows", {0, 7}, 1)};
}

OpCase norm_case(const char* name, size_t rows, size_t vectors) {
  OpCase op;
  op.name = name;
  op.samples = samples(rows, vectors);
  op.twice = rows == 1;
  return op;
}

TEST(LayerNorm, PassesItsCase) {
  OpCase op = norm_case("layer_norm", 1, 2);
  op.run = [](const TensorList& x) { return TensorList{layer_norm(x[0], x[1], x[2], eps)}; };
  op.reference = [](const TensorList& x) {
    return TensorList{norm_by_formula(x[0], x[1], x[2], true)};
  };
  op.refusals = {
      {[] {
         layer_norm(zeros({2, 3}, DType::i64), {}, {}, eps);
       },
       "layer_norm: takes floating-point tensors: got i64"},
      {[] {
         layer_norm(zeros({2, 3}, DType::f32), zeros({4}, DType::f32), {}, eps);
       },
       "layer_norm: the weight must have the size of the last dimension: x is [2, 3], weight is "
       "[4]"},
      {[] {
         layer_norm(zeros({2, 3}, DType::bf16), {}, zeros({3}, DType::f32), eps);
       },
       "layer_norm: x and bias differ in type: x is bf16, bias is f32"},
      {[] { layer_norm(scalar(1, DType::f32), {}, {}, eps); },
       "layer_norm: takes at least one dimension"}};
  check_op(op);
}

TEST(LayerNorm, PassesItsCaseWithoutWeightAndBias) {
  OpCase op = norm_case("layer_norm plain", 1, 0);
  op.run = [](const TensorList& x) { return TensorList{layer_norm(x[0], {}, {}, eps)}; };
  op.reference = [](const TensorList& x) {
    return TensorList{norm_by_formula(x[0], {}, {}, true)};
  };
  check_op(op);
}

TEST(LayerNorm, KeepsItsDigitsFarFromZero) {
  Tensor x = random_tensor({4, 100}, 5, 1e-3);
  for (double& v : x.mutable_values<double>()) {
    v = static_cast<double>(static_cast<float>(v + 1000));  // variance 10⁻⁶ beside mean² 10⁶
  }
  const Tensor y = layer_norm(converted(x, DType::f32), {}, {}, 0);
  EXPECT_LE(difference(y, layer_norm(x, {}, {}, 0)), 2e-2);  // the mean rounds at 6·10⁻⁵/2
}

// Gains stored as their difference from 1, as a tensor of the gains themselves.
Tensor one_more(const Tensor& weight) {
  return added(weight, full(weight.shape(), 1, weight.dtype()));
}

TEST(RmsNorm, PassesItsCaseWithGainsStoredAsTheirDifferenceFromOne) {
  OpCase op = norm_case("rms_norm with offset", 1, 1);
  op.run = [](const TensorList& x) { return TensorList{rms_norm(x[0], x[1], eps, 1)}; };
  op.reference = [](const TensorList& x) {
    return TensorList{norm_by_formula(x[0], one_more(x[1]), {}, false)};
  };
  check_op(op);
}

TEST(AddRmsNorm, PassesItsCaseWithGainsStoredAsTheirDifferenceFromOne) {
  OpCase op = norm_case("add_rms_norm with offset", 2, 1);
  op.run = [](const TensorList& x) {
    const NormedSum y = add_rms_norm(x[0], x[1], x[2], eps, 1);
    return TensorList{y.normed, y.sum};
  };
  op.reference = [](const TensorList& x) {
    const Tensor sum = added(x[0], x[1]);
    return TensorList{norm_by_formula(sum, one_more(x[2]), {}, false), sum};
  };
  check_op(op);
}

TEST(RmsNorm, PassesItsCase) {
  OpCase op = norm_case("rms_norm", 1, 1);
  op.run = [](const TensorList& x) { return TensorList{rms_norm(x[0], x[1], eps)}; };
  op.reference = [](const TensorList& x) {
    return TensorList{norm_by_formula(x[0], x[1], {}, false)};
  };
  op.refusals = {{[] { rms_norm(zeros({3}, DType::f32), zeros({3}, DType::bf16), eps); },
                  "rms_norm: x and weight differ in type: x is f32, weight is bf16"}};
  check_op(op);
}

TEST(RmsNorm, PassesItsCaseWithoutWeight) {
  OpCase op = norm_case("rms_norm plain", 1, 0);
  op.run = [](const TensorList& x) { return TensorList{rms_norm(x[0], {}, eps)}; };
  op.reference = [](const TensorList& x) {
    return TensorList{norm_by_formula(x[0], {}, {}, false)};
  };
  check_op(op);
}

TEST(AddLayerNorm, PassesItsCase) {
  OpCase op = norm_case("add_layer_norm", 2, 2);
  op.run = [](const TensorList& x) {
    const NormedSum out = add_layer_norm(x[0], x[1], x[2], x[3], eps);
    return TensorList{out.normed, out.sum};
  };
  op.reference = [](const TensorList& x) {
    const Tensor sum = added(x[0], x[1]);
    return TensorList{norm_by_formula(sum, x[2], x[3], true), sum};
  };
  check_op(op);
}

TEST(AddRmsNorm, PassesItsCase) {
  OpCase op = norm_case("add_rms_norm", 2, 1);
  op.run = [](const TensorList& x) {
    const NormedSum out = add_rms_norm(x[0], x[1], x[2], eps);
    return TensorList{out.normed, out.sum};
  };
  op.reference = [](const TensorList& x) {
    const Tensor sum = added(x[0], x[1]);
    return TensorList{norm_by_formula(sum, x[2], {}, false), sum};
  };
  op.refusals = {{[] {
                    add_rms_norm(zeros({2, 3}, DType::f32), zeros({3}, DType::f32), {}, eps);
                  },
                  "add_rms_norm: x and residual differ: x is f32 [2, 3], residual is f32 [3]"}};
  check_op(op);
}

TEST(AddRmsNorm, SendsTheGradientOfEitherResultToBothAddends) {
  for (const bool through_sum : {false, true}) {
    Tensor x = random_tensor({3, 8}, 1);
    Tensor r = random_tensor({3, 8}, 2);
    require_grad(x);
    require_grad(r);
    const NormedSum out = add_rms_norm(x, r, {}, eps);
    backward(through_sum ? out.sum : out.normed, random_tensor({3, 8}, 3));
    EXPECT_TRUE(same_bits(grad(x), grad(r)));
    EXPECT_EQ(same_bits(grad(x), random_tensor({3, 8}, 3)), through_sum);
  }
}

TEST(AddRmsNorm, RefusesASecondDerivative) {
  Tensor x = random_tensor({3, 8}, 1);
  require_grad(x);
  const Tensor y = add_rms_norm(x, random_tensor({3, 8}, 2), {}, eps).normed;
  const Tensor dx = gradients({y}, {x}, {random_tensor({3, 8}, 3)}, CreateGraph::yes)[0];
  expect_error(
      [&] {
        gradients({dx}, {x}, {random_tensor({3, 8}, 4)});
      },
      "add_rms_norm: has no second derivative");
}

TEST(RmsNorm, GivesWeightGradientsInTheAccumulatorType) {
  Tensor x = converted(random_tensor({64, 16}, 1), DType::bf16);
  Tensor weight = full({16}, 1, DType::bf16);
  require_grad(x);
  require_grad(weight);
  const Tensor y = rms_norm(x, weight, eps);
  const TensorList grads = gradients({y}, {x, weight}, {full(y.shape(), 1, DType::bf16)});
  EXPECT_EQ(grads[0].dtype(), DType::bf16);
  EXPECT_EQ(grads[1].dtype(), DType::f32);
}

}  // namespace
}  // namespace ingot::testing
