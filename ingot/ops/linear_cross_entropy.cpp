#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/cross_entropy.h"
#include "ingot/kernels/elementwise.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

using kernels::Accumulate;

// Bytes of the logits that exist at a time. More rows make longer sums in dW += dlogitsᵀ x, which
// reads and writes all of dW once a piece. N = 1024, D = 768, V = 50304: processor seconds in
// f32 2.4 with 16 MiB, 2.15 with 32, 1.9 with 112; milliseconds in bf16 450 with 32 MiB, 420 with
// 128.
constexpr int64_t piece_bytes = int64_t{32} << 20;

// Rows of one piece: the rows are divided evenly among as few pieces as piece_bytes allows.
int64_t piece_rows(int64_t rows, int64_t classes, DType dtype) {
  constexpr int64_t multiple = 16;
  const int64_t most = std::max(multiple, piece_bytes / (classes * size_of(dtype)));
  const int64_t pieces = std::max<int64_t>(1, (rows + most - 1) / most);
  const int64_t even = (rows + pieces - 1) / pieces;
  return std::min(std::max<int64_t>(rows, 1), (even + multiple - 1) / multiple * multiple);
}

void check_inputs(const char* op, const Tensor& x, const Tensor& weight, const Tensor& labels) {
  check(is_float(x.dtype()) && x.dtype() == weight.dtype(), ErrorKind::dtype, op,
        ": takes floating-point tensors of one type: x is ", x.dtype(), ", weight is ",
        weight.dtype());
  check(labels.dtype() == DType::i64, ErrorKind::dtype, op, ": takes i64 labels: got ",
        labels.dtype());
  check(x.rank() == labels.rank() + 1 &&
            std::equal(labels.shape().begin(), labels.shape().end(), x.shape().begin()),
        ErrorKind::shape, op, ": needs one label a row: x is ", x.shape(), ", labels are ",
        labels.shape());
  check(weight.rank() == 2 && weight.size(0) > 0 && weight.size(1) == x.size(-1), ErrorKind::shape,
        op, ": weight must be [classes, features]: x is ", x.shape(), ", weight is ",
        weight.shape());
}

// Rows of x, the weight, and one piece of logits at a time.
class Pieces {
 public:
  Pieces(const Tensor& x, const Tensor& weight, const Tensor& labels)
      : x_(reshaped(dense(x), {labels.elements(), x.size(-1)})),
        weight_(dense(weight)),
        labels_(reshaped(dense(labels), {labels.elements()})),
        losses_(empty({labels.elements()}, accumulator(x.dtype()), x.device())) {
    const PurposeScope scope(Purpose::workspace);
    const int64_t rows = piece_rows(x_.size(0), weight.size(0), x.dtype());
    logits_ = empty({rows, weight.size(0)}, x.dtype(), x.device());
  }

  // FLOPs of one product of x with weight, or of a gradient of it.
  int64_t flops() const { return 2 * x_.elements() * weight_.size(0); }

  void check_labels(const char* op, int64_t ignore_index) const {
    on_device(x_.device(), [&](const auto& on) {
      kernels::counted_labels(on, op, labels_.view(), weight_.size(0), ignore_index);
    });
  }

  // The losses [N] alone.
  Tensor losses(const kernels::CrossEntropyRule& rule) {
    each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
      kernels::cross_entropy(on, logits.view(), sliced(labels_, 0, begin, end).view(), rule,
                             sliced(losses_, 0, begin, end).fresh_view(), {});
    });
    return losses_;
  }

  // The losses, and the gradients of their sum where dx [..., D] or dweight [V, D] is defined.
  Tensor losses(const kernels::CrossEntropyRule& rule, const Tensor& dx, Tensor& dweight) {
    Tensor dx_rows = dx.defined() ? reshaped(dx, x_.shape()) : dx;
    each([&](const auto& on, int64_t begin, int64_t end, Tensor& logits) {
      kernels::cross_entropy_in_place(on, logits.fresh_view(),
                                      sliced(labels_, 0, begin, end).view(), rule,
                                      sliced(losses_, 0, begin, end).fresh_view());
      if (dx.defined()) {
        kernels::matmul(on, logits.view(), weight_.view(),
                        sliced(dx_rows, 0, begin, end).fresh_view());
      }
      if (dweight.defined()) {
        kernels::matmul(on, transposed(logits, 0, 1).view(), sliced(x_, 0, begin, end).view(),
                        dweight.fresh_view(), begin == 0 ? Accumulate::no : Accumulate::yes);
      }
    });
    return losses_;
  }

 private:
  // f(on, first row, end, logits of these rows) for each piece.
  template <class F>
  void each(F&& f) {
    on_device(x_.device(), [&](const auto& on) {
      for (int64_t begin = 0; begin < x_.size(0); begin += logits_.size(0)) {
        const int64_t end = std::min(begin + logits_.size(0), x_.size(0));
        Tensor logits = sliced(logits_, 0, 0, end - begin);
        kernels::matmul(on, sliced(x_, 0, begin, end).view(), transposed(weight_, 0, 1).view(),
                        logits.fresh_view());
        f(on, begin, end, logits);
      }
    });
  }

  Tensor x_;       // [N, D]
  Tensor weight_;  // [V, D]
  Tensor labels_;  // [N]
  Tensor losses_;  // [N]
  Tensor logits_;  // [R, V]
};

// dx and dweight of the sum, until the backward hands them on.
struct Gradients {
  Tensor dx, dweight;
};

void scale_in_place(Tensor& x, double factor) {
  if (x.defined()) {
    on_device(x.device(), [&](const auto& on) {
      kernels::binary(on, kernels::Binary::mul, x.view(), factor, x.mutable_view());
    });
  }
}

// The gradients times dy. They are given away, not copied: a leaf takes the buffer as its own.
TensorList handed_on(Gradients& grads, const Tensor& dy) {
  TensorList out = {std::move(grads.dx), std::move(grads.dweight)};
  grads = {};
  const double factor = dy.device().kind == DeviceKind::meta ? 1 : dy.item();
  if (factor != 1) {
    scale_in_place(out[0], factor);
    scale_in_place(out[1], factor);
  }
  return out;
}

// The same, kept for another walk of a history that is differentiated again.
TensorList copied(const Gradients& grads, const Tensor& dy, const TensorList& behind) {
  const char* op = "linear_cross_entropy";
  TensorList out = {grads.dx.defined() ? copy_of(grads.dx) : grads.dx,
                    grads.dweight.defined() ? copy_of(grads.dweight) : grads.dweight};
  for (Tensor& grad : out) {
    scale_in_place(grad, dy.item());
    grad = grad.defined() ? record(op, grad, first_order_only(op, behind)) : grad;
  }
  return out;
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                            const CrossEntropyOptions& options) {
  const char* op = "linear_cross_entropy";
  check_inputs(op, x, weight, labels);
  const DType wide = accumulator(x.dtype());
  const kernels::CrossEntropyRule rule{options.ignore_index, options.label_smoothing,
                                       options.z_loss, options.softcap};
  const auto grads = std::make_shared<Gradients>();
  if (needs_grad(x)) {
    grads->dx = empty(x.shape(), x.dtype(), x.device());
  }
  if (needs_grad(weight)) {
    const PurposeScope scope(Purpose::gradients);
    grads->dweight = x.elements() == 0 ? zeros(weight.shape(), wide, x.device())
                                       : empty(weight.shape(), wide, x.device());
  }
  Tensor loss = empty({}, wide, x.device());
  {
    Pieces pieces(x, weight, labels);
    pieces.check_labels(op, rule.ignore_index);
    const bool wants_gradients = grads->dx.defined() || grads->dweight.defined();
    count_flops(pieces.flops() *
                (1 + (grads->dx.defined() ? 1 : 0) + (grads->dweight.defined() ? 1 : 0)));
    const Tensor losses =
        wants_gradients ? pieces.losses(rule, grads->dx, grads->dweight) : pieces.losses(rule);
    on_device(x.device(), [&](const auto& on) {
      kernels::sum_losses(on, losses.view(), 1, loss.fresh_view());
    });
  }
  const TensorList behind = {history_of(x), history_of(weight)};
  return record(op, loss, jointly({x, weight}, [grads, behind](const TensorList& dys) {
                  return recording() ? copied(*grads, dys[0], {behind[0], behind[1], dys[0]})
                                     : handed_on(*grads, dys[0]);
                }));
}

Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& labels,
                              double softcap) {
  const char* op = "linear_log_probability";
  check_inputs(op, x, weight, labels);
  Pieces pieces(x, weight, labels);
  kernels::CrossEntropyRule rule;
  rule.ignore_index = std::numeric_limits<int64_t>::min();  // every label counts
  rule.softcap = softcap;
  pieces.check_labels(op, rule.ignore_index);
  count_flops(pieces.flops());
  Tensor losses = pieces.losses(rule);
  scale_in_place(losses, -1);
  return reshaped(losses, labels.shape());
}

}  // namespace ingot
