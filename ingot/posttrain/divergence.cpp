#include "ingot/posttrain/divergence.h"

#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"

namespace ingot {
namespace {

// Σ_v e^{a_v} (a_v − b_v): [M, V] → [M]
Tensor kl_of_logs(const Tensor& a, const Tensor& b) { return sum(exp(a) * (a - b), -1); }

// What probabilities that add up to `total` leave, not below the rounding of their sum.
Tensor rest_of(const Tensor& logps) { return clamp(1 - sum(exp(logps), -1), 1e-7, 1); }

}  // namespace

Tensor divergence(const Tensor& teacher, const Tensor& student, double beta, double temperature) {
  check(teacher.shape() == student.shape(), ErrorKind::shape,
        "divergence: teacher and student must have one vocabulary: teacher is ", teacher.shape(),
        ", student is ", student.shape());
  check(beta >= 0 && beta <= 1 && temperature > 0, ErrorKind::argument,
        "divergence: beta must be in [0, 1] and the temperature above 0: beta is ", beta,
        ", temperature is ", temperature);
  const Tensor p = temperature == 1 ? teacher : teacher / temperature;
  const Tensor q = temperature == 1 ? student : student / temperature;
  if (beta == 0) {
    return kl_divergence(p, q);
  }
  if (beta == 1) {
    return kl_divergence(q, p);
  }
  const Tensor log_p = log_softmax(p);
  const Tensor log_q = log_softmax(q);
  // log(β p + (1 − β) q) from logarithms, so that what underflows has a gradient still.
  const Tensor own = log_q + std::log1p(-beta);
  const Tensor log_m = own + softplus(log_p + std::log(beta) - own);
  return kl_of_logs(log_p, log_m) * beta + kl_of_logs(log_q, log_m) * (1 - beta);
}

TopLogprobs top_logprobs(const Tensor& logits, int64_t k, double temperature) {
  const NoGrad quiet;
  check(k >= 1 && k <= logits.size(-1), ErrorKind::argument,
        "top_logprobs: more tokens than there are: k is ", k, ", the vocabulary has ",
        logits.size(-1));
  const Sorted top = topk(log_softmax(logits / temperature), k);
  return {top.indices, top.values};
}

Tensor top_divergence(const TopLogprobs& teacher, const Tensor& student, double temperature) {
  const Tensor log_q = log_softmax(temperature == 1 ? student : student / temperature);
  const Tensor log_p = cast(teacher.logps, log_q.dtype());
  const Tensor q = gather(log_q, -1, teacher.tokens);
  const Tensor known = kl_of_logs(log_p, q);
  if (teacher.tokens.size(-1) == student.size(-1)) {
    return known;
  }
  const Tensor p_rest = rest_of(log_p);
  return known + p_rest * (log(p_rest) - log(rest_of(q)));
}

}  // namespace ingot
