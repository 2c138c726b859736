#include "ingot/autograd/watch.h"
#include "ingot/device/flops.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/early_gradients.h"
#include "ingot/ops/logit_pieces.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// The losses [N] alone.
Tensor losses_of(LogitPieces& pieces, const kernels::CrossEntropyRule& rule) {
  const Tensor& x = pieces.rows();
  Tensor losses = empty({x.size(0)}, accumulator(x.dtype()), x.device());
  pieces.each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
    kernels::cross_entropy(on, logits.view(), sliced(pieces.labels(), 0, begin, end).view(), rule,
                           sliced(losses, 0, begin, end).fresh_view(), {});
  });
  return losses;
}

// The losses, and the gradients of their sum where dx [..., D] or dweight [V, D] is defined.
Tensor losses_of(LogitPieces& pieces, const kernels::CrossEntropyRule& rule, const Tensor& dx,
                 Tensor& dweight) {
  const Tensor& x = pieces.rows();
  Tensor losses = empty({x.size(0)}, accumulator(x.dtype()), x.device());
  pieces.each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
    kernels::cross_entropy_in_place(on, logits.fresh_view(),
                                    sliced(pieces.labels(), 0, begin, end).view(), rule,
                                    sliced(losses, 0, begin, end).fresh_view());
    pieces.add_gradients(on, begin, end, logits, dx, dweight);
  });
  return losses;
}

// For whoever watches and asks: with them log Z = log Σ_v exp(logit_v) of every row.
void show_logit_sums(LogitPieces& pieces, const kernels::CrossEntropyRule& rule) {
  Watch* watch = watching();
  if (watch == nullptr || !watch->wants("logit sums")) {
    return;
  }
  const Tensor& x = pieces.rows();
  const DType wide = accumulator(x.dtype());
  Tensor losses = empty({x.size(0)}, wide, x.device());
  Tensor sums = empty({x.size(0), 2}, wide, x.device());
  pieces.each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
    kernels::cross_entropy(on, logits.view(), sliced(pieces.labels(), 0, begin, end).view(), rule,
                           sliced(losses, 0, begin, end).fresh_view(),
                           sliced(sums, 0, begin, end).fresh_view());
  });
  watch->shown("logit sums", {sums, pieces.labels()});
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                            const CrossEntropyOptions& options) {
  const char* op = "linear_cross_entropy";
  LogitPieces::check_inputs(op, x, weight, labels);
  const DType wide = accumulator(x.dtype());
  const kernels::CrossEntropyRule rule{options.ignore_index, options.label_smoothing,
                                       options.z_loss, options.softcap};
  Tensor dx, dweight;
  if (needs_grad(x)) {
    dx = empty(x.shape(), x.dtype(), x.device());
  }
  if (needs_grad(weight)) {
    const PurposeScope scope(Purpose::gradients);
    dweight = x.elements() == 0 ? zeros(weight.shape(), wide, x.device())
                                : empty(weight.shape(), wide, x.device());
  }
  Tensor loss = empty({}, wide, x.device());
  {
    LogitPieces pieces(x, weight, labels);
    pieces.check_labels(op, rule.ignore_index);
    show_logit_sums(pieces, rule);
    const bool wants_gradients = dx.defined() || dweight.defined();
    count_flops(pieces.flops() * (1 + (dx.defined() ? 1 : 0) + (dweight.defined() ? 1 : 0)));
    const Tensor losses =
        wants_gradients ? losses_of(pieces, rule, dx, dweight) : losses_of(pieces, rule);
    on_device(x.device(), [&](const auto& on) {
      kernels::sum_losses(on, losses.view(), 1, loss.fresh_view());
    });
  }
  return record(op, loss, early_gradients(op, {x, weight}, {dx, dweight}));
}

}  // namespace ingot
