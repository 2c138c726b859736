#include "ingot/posttrain/reward.h"

#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_lists(const char* what, const Tensor& scores) {
  check(scores.rank() == 2 && scores.size(1) >= 2, ErrorKind::shape, what,
        ": takes scores [N, K] of at least two answers each: got ", scores.shape());
}

Tensor column(const Tensor& x, int64_t k) { return squeeze(slice(x, 1, k, k + 1), 1); }

}  // namespace

Tensor bradley_terry_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& margin,
                            double center) {
  const Tensor d = chosen - rejected;
  const Tensor losses = -log_sigmoid(margin.defined() ? d - margin : d);
  return center == 0 ? losses : losses + square(chosen + rejected) * center;
}

Tensor plackett_luce_losses(const Tensor& scores, const Tensor& lengths) {
  check_lists("plackett_luce", scores);
  const int64_t K = scores.size(1);
  Tensor s = scores;
  Tensor there;  // [N, K]: whether a list has a k-th answer
  if (lengths.defined()) {
    there = less(unsqueeze(arange(K, DType::i64, scores.device()), 0), unsqueeze(lengths, 1));
    s = where(there, s, scalar(-1e30, s.dtype(), s.device()));
  }
  Tensor total;
  for (int64_t k = 0; k + 1 < K; ++k) {
    Tensor one = logsumexp(slice(s, 1, k, K), 1) - column(s, k);
    if (there.defined()) {  // the last answer of a list is no choice, and what is beyond it none
      one = where(column(there, k + 1), one, scalar(0, s.dtype(), s.device()));
    }
    total = total.defined() ? total + one : one;
  }
  return total;
}

Tensor ranked_pairs_losses(const Tensor& scores) {
  check_lists("ranked_pairs", scores);
  const int64_t K = scores.size(1);
  Tensor total;
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t j = i + 1; j < K; ++j) {
      const Tensor one = bradley_terry_losses(column(scores, i), column(scores, j));
      total = total.defined() ? total + one : one;
    }
  }
  return total / (static_cast<double>(K * (K - 1)) / 2);
}

double pairs_in_order(const Tensor& chosen, const Tensor& rejected) {
  if (chosen.device().kind == DeviceKind::meta) {
    return 0;
  }
  const auto count = [](const Tensor& holds) { return sum(cast(holds, DType::f64)).item(); };
  return (count(greater(chosen, rejected)) + count(greater_equal(chosen, rejected))) / 2;
}

}  // namespace ingot
