#include "ingot/ops/int8_linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// The codes read one by one: scale of the group times code.
Tensor by_definition(const Int8Weight& w) {
  Tensor out = empty(w.codes.shape(), DType::f64);
  const auto codes = w.codes.values<int8_t>();
  const auto scales = w.scales.values<float>();
  const int64_t features = w.codes.size(1);
  const int64_t groups = w.scales.size(1);
  auto values = out.mutable_values<double>();
  for (int64_t n = 0; n < w.codes.size(0); ++n) {
    for (int64_t k = 0; k < features; ++k) {
      const auto i = static_cast<size_t>(n * features + k);
      values[i] = static_cast<double>(scales[static_cast<size_t>(n * groups + k / 64)]) * codes[i];
    }
  }
  return out;
}

TEST(Int8Linear, PassesItsCase) {
  for (const int64_t features : {1, 9, 64, 150}) {
    const Int8Weight weight = int8_weight(random_tensor({6, features}, 7));
    OpCase op;
    op.name = "int8_linear";
    op.run = [weight](const TensorList& x) {
      const Int8Weight there{moved(weight.codes, x[0].device()),
                             moved(weight.scales, x[0].device())};
      return TensorList{int8_linear(x[0], there, x[1])};
    };
    op.reference = [weight](const TensorList& x) {
      const Shape rows{x[0].elements() / x[0].size(-1), x[0].size(-1)};
      const Tensor y = matmul(reshape(x[0], rows), transpose(by_definition(weight))) + x[1];
      Shape shape = x[0].shape();
      shape[shape.rank() - 1] = 6;
      return TensorList{reshape(y, shape)};
    };
    for (const int64_t rows : {1, 4, 7, 16, 17, 40}) {
      op.samples.push_back({concat(rows, " rows of ", features),
                            {random_tensor({1, rows, features}, 1), random_tensor({6}, 2)}});
    }
    op.twice = true;
    op.refusals = {{[weight, features] {
                      int8_linear(zeros({2, features + 1}, DType::f32), weight);
                    },
                    "int8_linear: inner dimensions differ"},
                   {[weight, features] {
                      int8_linear(zeros({2, features}, DType::i32), weight);
                    },
                    "int8_linear: takes floating-point tensors: got i32"},
                   {[weight, features] {
                      int8_linear(zeros({2, features}, DType::f32), weight, zeros({5}, DType::f32));
                    },
                    "int8_linear: bias has not one element a row of weight"}};
    check_op(op);
  }
}

TEST(Int8Linear, TakesSizesOfZero) {
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{0, 5, 3}, {2, 0, 3}, {2, 5, 0}}) {
    SCOPED_TRACE(concat(rows, " rows, ", in, " to ", out));
    Tensor x = zeros({rows, in}, DType::f32);
    require_grad(x);
    const Tensor bias = full({out}, 2, DType::f32);
    const Tensor y = int8_linear(x, int8_weight(zeros({out, in}, DType::f32)), bias);
    EXPECT_TRUE(same_bits(y, full({rows, out}, 2, DType::f32)));
    const TensorList dx = gradients({y}, {x}, {full(y.shape(), 1, DType::f32)});
    EXPECT_TRUE(same_bits(dx[0], zeros({rows, in}, DType::f32)));
  }
}

TEST(Int8Weight, RoundsToTheNearestOf255StepsOfItsGroup) {
  const Tensor w = converted(random_tensor({5, 150}, 3), DType::f32);
  const Int8Weight coded = int8_weight(w);
  EXPECT_EQ(coded.scales.shape(), (Shape{5, 3}));
  const Tensor back = dense_weight(coded, DType::f32);
  EXPECT_LE(difference(back, by_definition(coded)), 1e-7);
  const auto values = w.values<float>();
  const auto codes = coded.codes.values<int8_t>();
  const auto scales = coded.scales.values<float>();
  for (size_t n = 0; n < 5; ++n) {
    for (size_t g = 0; g < 3; ++g) {
      float most = 0;
      for (size_t k = 64 * g; k < std::min<size_t>(64 * g + 64, 150); ++k) {
        most = std::max(most, std::abs(values[150 * n + k]));
      }
      EXPECT_EQ(scales[3 * n + g], most / 127);
      for (size_t k = 64 * g; k < std::min<size_t>(64 * g + 64, 150); ++k) {
        EXPECT_EQ(codes[150 * n + k], std::nearbyint(values[150 * n + k] * (127 / most)));
      }
    }
  }
}

TEST(Int8Weight, KeepsZerosAndShowsValuesThatAreNotFinite) {
  Tensor w = zeros({2, 70}, DType::f32);
  w.mutable_values<float>()[75] = std::numeric_limits<float>::infinity();  // row 1, group 0
  const Tensor back = dense_weight(int8_weight(w), DType::f32);
  const auto values = back.values<float>();
  EXPECT_EQ(values[0], 0);
  EXPECT_TRUE(std::isnan(values[75]));
  EXPECT_TRUE(std::isnan(values[70]));
  EXPECT_EQ(values[139], 0);  // row 1, group 1
  const Tensor y = int8_linear(full({1, 70}, 1, DType::f32), int8_weight(w));
  EXPECT_EQ(y.values<float>()[0], 0);
  EXPECT_TRUE(std::isnan(y.values<float>()[1]));
}

TEST(Int8Linear, GivesEveryFewRowsTheBitsOfEachAlone) {
  const Int8Weight weight = int8_weight(random_tensor({37, 200}, 4));
  const Tensor x = converted(random_tensor({16, 200}, 5), DType::bf16);
  const Tensor together = int8_linear(x, weight);
  for (int64_t row = 0; row < 16; ++row) {
    EXPECT_TRUE(same_bits(dense(sliced(together, 0, row, row + 1)),
                          int8_linear(dense(sliced(x, 0, row, row + 1)), weight)))
        << row;
  }
}

}  // namespace
}  // namespace ingot::testing
