#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/kernels/elementwise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/logit_pieces.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr const char* op = "linear_log_probability";

kernels::CrossEntropyRule rule_of(const LogProbabilityOptions& options) {
  kernels::CrossEntropyRule rule;
  rule.ignore_index = options.ignore_index;
  rule.softcap = options.softcap;
  return rule;
}

struct Forward {
  Tensor losses;      // [N], −log p
  Tensor statistics;  // [N, 2]
};

Forward forward(const Tensor& x, const Tensor& weight, const Tensor& labels,
                const kernels::CrossEntropyRule& rule) {
  LogitPieces pieces(x, weight, labels);
  pieces.check_labels(op, rule.ignore_index);
  count_flops(pieces.flops());
  const int64_t rows = labels.elements();
  const DType wide = accumulator(x.dtype());
  Forward out{empty({rows}, wide, x.device()), empty({rows, 2}, wide, x.device())};
  pieces.each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
    kernels::cross_entropy(on, logits.view(), sliced(pieces.labels(), 0, begin, end).view(), rule,
                           sliced(out.losses, 0, begin, end).fresh_view(),
                           sliced(out.statistics, 0, begin, end).fresh_view());
  });
  return out;
}

// Gradients of Σ dy_n log p_n, one piece of logits at a time: dlogits = dy (onehot − p).
TensorList backward(const Tensor& x, const Tensor& weight, const Tensor& labels,
                    const Tensor& statistics, const kernels::CrossEntropyRule& rule,
                    const Tensor& dy, bool wants_dx, bool wants_dweight) {
  LogitPieces pieces(x, weight, labels);
  count_flops(pieces.flops() * (1 + (wants_dx ? 1 : 0) + (wants_dweight ? 1 : 0)));
  const Tensor dys = reshaped(dense(dy), {labels.elements()});
  const bool none = x.elements() == 0;
  Tensor dx, dweight;
  if (wants_dx) {
    dx = empty(x.shape(), x.dtype(), x.device());
  }
  if (wants_dweight) {
    const DType wide = accumulator(weight.dtype());
    dweight =
        none ? zeros(weight.shape(), wide, x.device()) : empty(weight.shape(), wide, x.device());
  }
  pieces.each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
    const View dlogits = logits.fresh_view();
    kernels::cross_entropy_backward(on, logits.view(),
                                    sliced(pieces.labels(), 0, begin, end).view(),
                                    sliced(statistics, 0, begin, end).view(), rule,
                                    sliced(dys, 0, begin, end).view(), -1, dlogits);
    pieces.add_gradients(on, begin, end, logits, dx, dweight);
  });
  return {dx, dweight};
}

}  // namespace

Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& labels,
                              const LogProbabilityOptions& options) {
  LogitPieces::check_inputs(op, x, weight, labels);
  const kernels::CrossEntropyRule rule = rule_of(options);
  const Forward found = forward(x, weight, labels, rule);
  Tensor y = reshaped(found.losses, labels.shape());
  on_device(y.device(), [&](const auto& on) {
    kernels::binary(on, kernels::Binary::mul, y.view(), -1, y.fresh_view());
  });
  const TensorList behind = {history_of(x), history_of(weight)};
  return record(
      op, y,
      jointly({x, weight}, [x = saved(detach(x)), weight = saved(detach(weight)),
                            labels = saved(labels), statistics = found.statistics, rule, behind,
                            dx = needs_grad(x),
                            dweight = needs_grad(weight)](const TensorList& dys) {
        TensorList grads = backward(x(), weight(), labels(), statistics, rule, dys[0], dx, dweight);
        if (recording()) {
          for (Tensor& grad : grads) {
            grad = grad.defined()
                       ? record(op, grad, first_order_only(op, {behind[0], behind[1], dys[0]}))
                       : grad;
          }
        }
        return grads;
      }));
}

}  // namespace ingot
