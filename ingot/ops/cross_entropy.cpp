#include "ingot/ops/cross_entropy.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

void check_inputs(const Tensor& logits, const Tensor& labels) {
  check(is_float(logits.dtype()), ErrorKind::dtype,
        "cross_entropy: takes floating-point logits: got ", logits.dtype());
  check(labels.dtype() == DType::i64, ErrorKind::dtype, "cross_entropy: takes i64 labels: got ",
        labels.dtype());
  check(logits.rank() == labels.rank() + 1 &&
            std::equal(labels.shape().begin(), labels.shape().end(), logits.shape().begin()),
        ErrorKind::shape, "cross_entropy: needs one label a row: logits are ", logits.shape(),
        ", labels are ", labels.shape());
  check(logits.size(-1) > 0, ErrorKind::shape, "cross_entropy: there are no classes: logits are ",
        logits.shape());
}

// What the backward needs; logits are [N, V], labels [N].
struct Kept {
  Saved logits;
  Tensor labels;
  Tensor statistics;  // [N, 2]
  CrossEntropyOptions options;
  kernels::CrossEntropyRule rule;
  double scale;  // of dy: 1 / count for the mean
};

// dy: [N], maybe with stride 0.
Tensor fused_backward(const Kept& kept, const Tensor& dy) {
  const Tensor& logits = kept.logits();
  const Tensor rows = reshaped(logits, {kept.labels.size(0), logits.size(-1)});
  Tensor dlogits = empty(logits.shape(), logits.dtype(), logits.device());
  on_device(logits.device(), [&](const auto& on) {
    kernels::cross_entropy_backward(on, rows.view(), kept.labels.view(), kept.statistics.view(),
                                    kept.rule, dy.view(), kept.scale,
                                    reshaped(dlogits, rows.shape()).fresh_view());
  });
  return dlogits;
}

// The same in operations, for gradients that are differentiated again.
Tensor composed_backward(const Kept& kept, const Tensor& dy) {
  const Tensor& logits = kept.logits();
  const DType wide = accumulator(logits.dtype());
  const CrossEntropyOptions& how = kept.options;
  const int64_t classes = logits.size(-1);
  const Tensor x = reshape(cast(logits, wide), {kept.labels.size(0), classes});
  const Tensor l = how.softcap == 0 ? x : tanh(x * (1 / how.softcap)) * how.softcap;
  const Tensor log_sum = logsumexp(l, -1, Keep::yes);
  const Tensor ignored = equal(
      kept.labels, full({}, static_cast<double>(how.ignore_index), DType::i64, logits.device()));
  const Tensor zero = full({}, 0, DType::i64, logits.device());
  const Tensor target =
      one_hot(where(ignored, zero, kept.labels), classes, wide) * (1 - how.label_smoothing) +
      how.label_smoothing / static_cast<double>(classes);
  Tensor dl = exp(l - log_sum) * (log_sum * (2 * how.z_loss) + 1) - target;
  if (how.softcap != 0) {
    dl = dl * (1 - square(l * (1 / how.softcap)));
  }
  const Tensor none = full({}, 0, wide, logits.device());
  const Tensor weights = where(ignored, none, dy * kept.scale);
  return reshape(cast(dl * unsqueeze(weights, -1), logits.dtype()), logits.shape());
}

// dy of the result as one gradient a row.
Tensor by_row(const Tensor& dy, Reduction reduction, int64_t rows) {
  if (reduction == Reduction::none) {
    return reshape(dy, {rows});
  }
  return expand(dy, {rows});
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction,
                     const CrossEntropyOptions& options) {
  check_inputs(logits, labels);
  const Tensor x = contiguous(logits);
  const Tensor y = reshaped(dense(labels), {labels.elements()});
  const int64_t rows = y.size(0);
  const int64_t classes = x.size(-1);
  const DType wide = accumulator(x.dtype());
  const kernels::CrossEntropyRule rule{options.ignore_index, options.label_smoothing,
                                       options.z_loss, options.softcap};
  Tensor losses = empty({rows}, wide, x.device());
  Tensor statistics = empty({rows, 2}, wide, x.device());
  int64_t counted = rows;  // the meta device reads no labels
  on_device(x.device(), [&](const auto& on) {
    counted = kernels::counted_labels(on, "cross_entropy", y.view(), classes, rule.ignore_index);
    kernels::cross_entropy(on, reshaped(x, {rows, classes}).view(), y.view(), rule,
                           losses.fresh_view(), statistics.fresh_view());
  });
  check(reduction != Reduction::mean || counted > 0 || x.device().kind == DeviceKind::meta,
        ErrorKind::argument, "cross_entropy: no label counts: all ", rows, " are ",
        options.ignore_index, " (ignored), and a mean over nothing is undefined; use the sum");
  const double scale = reduction == Reduction::mean ? 1 / static_cast<double>(counted) : 1;
  Tensor out =
      reduction == Reduction::none ? reshaped(losses, labels.shape()) : empty({}, wide, x.device());
  if (reduction != Reduction::none) {
    on_device(x.device(), [&](const auto& on) {
      kernels::sum_losses(on, losses.view(), scale, out.fresh_view());
    });
  }
  const Kept kept{saved(x), y, statistics, options, rule, scale};
  return record("cross_entropy", out, wrt(x, [kept, reduction, rows](const Tensor& dy) {
                  const Tensor dlosses = by_row(dy, reduction, rows);
                  return recording() ? composed_backward(kept, dlosses)
                                     : fused_backward(kept, dlosses);
                }));
}

}  // namespace ingot
