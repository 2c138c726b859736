#include "ingot/ops/linear_loss.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// Σ over rows of KL(teacher ‖ student) times a weight of each row.
LogitLoss divergence_from(const Tensor& teacher, const Tensor& weights) {
  return [=](const Tensor& logits, int64_t begin, int64_t end) {
    const auto rows = [&](const Tensor& x) {
      return moved(cast(slice(x, 0, begin, end), logits.dtype()), logits.device());
    };
    return sum(kl_divergence(rows(teacher), logits) * rows(weights));
  };
}

TEST(SumOverLogits, EqualsTheLossOfTheWholeLogits) {
  for (const double cap : {0.0, 3.0}) {
    OpCase op;
    op.name = "sum_over_logits";
    const LogitLoss loss = divergence_from(random_tensor({5, 11}, 3), random_tensor({5}, 4));
    op.run = [=](const TensorList& x) {
      return TensorList{sum_over_logits(x[0], x[1], loss, cap)};
    };
    op.reference = [=](const TensorList& x) {
      const Tensor y = linear(x[0], x[1]);
      return TensorList{loss(cap > 0 ? tanh(y / cap) * cap : y, 0, y.size(0))};
    };
    op.samples = {{"odd sizes", {random_tensor({5, 3}, 1), random_tensor({11, 3}, 2)}}};
    op.dtypes = {DType::f32};
    op.refusals = {
        {[] {
           sum_over_logits(random_tensor({5, 3}, 1), random_tensor({11, 4}, 2), {});
         },
         "sum_over_logits: takes x [N, D] and weight [V, D]: x is [5, 3], weight is [11, 4]"}};
    check_op(op);
  }
}

// So many classes that every few rows are a piece.
TEST(SumOverLogits, JoinsItsPieces) {
  constexpr int64_t rows = 9, classes = 700'001;
  const Tensor teacher = random_tensor({rows, classes}, 3);
  const Tensor weights = random_tensor({rows}, 4);
  const auto gradients_of = [&](bool pieces) {
    Tensor x = random_tensor({rows, 2}, 1);
    Tensor weight = random_tensor({classes, 2}, 2);
    require_grad(x);
    require_grad(weight);
    const LogitLoss loss = divergence_from(teacher, weights);
    const Tensor y = pieces ? sum_over_logits(x, weight, loss) : loss(linear(x, weight), 0, rows);
    backward(y * 2.0);
    return TensorList{detach(y), grad(x), grad(weight)};
  };
  const TensorList got = gradients_of(true);
  const TensorList expected = gradients_of(false);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(difference(got[i], expected[i]), 1e-12) << i;
  }
}

}  // namespace
}  // namespace ingot::testing
