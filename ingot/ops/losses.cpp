#include "ingot/ops/losses.h"

#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_pair(const char* op, const char* first, const Tensor& a, const char* second,
                const Tensor& b) {
  check(is_float(a.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        a.dtype());
  check(a.shape() == b.shape() && a.dtype() == b.dtype(), ErrorKind::shape, op, ": ", first,
        " and ", second, " differ: ", first, " is ", a.dtype(), " ", a.shape(), ", ", second,
        " is ", b.dtype(), " ", b.shape());
}

Tensor wide(const Tensor& x) { return cast(x, accumulator(x.dtype())); }

// p, q, and log p − log q where p_v is not 0 (0 elsewhere): nothing here is infinite for an
// excluded class, whose logit is −∞.
struct Distributions {
  Tensor p, q, log_ratio;

  Distributions(const Tensor& p_logits, const Tensor& q_logits) {
    const Tensor log_p = log_softmax(wide(p_logits));
    const Tensor log_q = log_softmax(wide(q_logits));
    p = exp(log_p);
    q = exp(log_q);
    const Tensor zero = scalar(0, p.dtype(), p.device());
    const Tensor absent = equal(p, zero);
    log_ratio = where(absent, zero, log_p) - where(absent, zero, log_q);
  }
  Tensor divergence(Keep keep) const { return sum(p * log_ratio, -1, keep); }
};

}  // namespace

Tensor kl_divergence(const Tensor& p_logits, const Tensor& q_logits) {
  check_pair("kl_divergence", "p_logits", p_logits, "q_logits", q_logits);
  check(p_logits.rank() >= 1, ErrorKind::shape,
        "kl_divergence: takes at least one dimension: got scalars");
  Tensor divergence;
  {
    const NoGrad quiet;  // the backward computes p and q again, and keeps the logits alone
    divergence = Distributions(p_logits, q_logits).divergence(Keep::no);
  }
  const Saved p_saved = saved(p_logits);
  const Saved q_saved = saved(q_logits);
  return record("kl_divergence", divergence,
                wrt(p_logits,
                    [=](const Tensor& dy) {
                      const Distributions d(p_saved(), q_saved());
                      const Tensor slope = d.p * (d.log_ratio - d.divergence(Keep::yes));
                      return cast(slope * unsqueeze(dy, -1), p_saved().dtype());
                    }),
                wrt(q_logits, [=](const Tensor& dy) {
                  const Distributions d(p_saved(), q_saved());
                  return cast((d.q - d.p) * unsqueeze(dy, -1), q_saved().dtype());
                }));
}

Tensor mse(const Tensor& a, const Tensor& b, Reduction reduction) {
  check_pair("mse", "a", a, "b", b);
  const Tensor squares = square(wide(a) - wide(b));
  if (reduction == Reduction::none) {
    return squares;
  }
  check(reduction == Reduction::sum || a.elements() > 0, ErrorKind::argument,
        "mse: the mean over no elements is undefined: a is ", a.shape(), "; use the sum");
  return reduction == Reduction::sum ? sum(squares) : mean(squares);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, double eps) {
  check_pair("cosine_similarity", "a", a, "b", b);
  check(a.rank() >= 1, ErrorKind::shape,
        "cosine_similarity: takes at least one dimension: got scalars");
  const Tensor wide_a = wide(a);
  const Tensor wide_b = wide(b);
  const Tensor squares = sum(square(wide_a), -1) * sum(square(wide_b), -1);
  const double most = std::numeric_limits<double>::infinity();
  return sum(wide_a * wide_b, -1) * rsqrt(clamp(squares, eps * eps, most));
}

}  // namespace ingot
