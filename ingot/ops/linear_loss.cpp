#include "ingot/ops/linear_loss.h"

#include <algorithm>

#include "ingot/autograd/backward.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/early_gradients.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr const char* op = "sum_over_logits";

// Bytes of a piece's logits in f32; a loss made of operations holds several tensors of that size.
constexpr int64_t piece_bytes = int64_t{8} << 20;

void check_inputs(const Tensor& x, const Tensor& weight) {
  check(is_float(x.dtype()) && x.dtype() == weight.dtype(), ErrorKind::dtype, op,
        ": takes floating-point tensors of one type: x is ", x.dtype(), ", weight is ",
        weight.dtype());
  check(x.rank() == 2 && weight.rank() == 2 && weight.size(0) > 0 && weight.size(1) == x.size(1),
        ErrorKind::shape, op, ": takes x [N, D] and weight [V, D]: x is ", x.shape(),
        ", weight is ", weight.shape());
}

// Adds a piece's share: dx = dlogits W for its rows, dW += dlogitsᵀ x.
void add_share(const Tensor& dlogits, const Tensor& rows, const Tensor& weight, Tensor dx,
               Tensor& dweight) {
  if (dx.defined()) {
    count_flops(2 * rows.elements() * weight.size(0));
    on_device(dx.device(), [&](const auto& on) {
      kernels::matmul(on, dlogits.view(), weight.view(), dx.fresh_view());
    });
  }
  if (dweight.defined()) {
    count_flops(2 * rows.elements() * weight.size(0));
    on_device(dweight.device(), [&](const auto& on) {
      kernels::matmul(on, transposed(dlogits, 0, 1).view(), rows.view(), dweight.fresh_view(),
                      kernels::Accumulate::yes);
    });
  }
}

}  // namespace

Tensor sum_over_logits(const Tensor& given, const Tensor& given_weight, const LogitLoss& loss,
                       double softcap) {
  check_inputs(given, given_weight);
  const Tensor x = dense(detach(given));
  const Tensor weight = dense(detach(given_weight));
  const DType wide = accumulator(x.dtype());
  Tensor dx, dweight;
  if (needs_grad(given)) {
    dx = empty(x.shape(), x.dtype(), x.device());
  }
  if (needs_grad(given_weight)) {
    const PurposeScope scope(Purpose::gradients);
    dweight = zeros(weight.shape(), wide, x.device());
  }
  const bool wants_gradients = dx.defined() || dweight.defined();
  const int64_t step =
      std::max<int64_t>(1, piece_bytes / (weight.size(0) * static_cast<int64_t>(sizeof(float))));
  Tensor total = zeros({}, wide, x.device());
  for (int64_t begin = 0; begin < x.size(0); begin += step) {
    const int64_t end = std::min(begin + step, x.size(0));
    const Tensor rows = sliced(x, 0, begin, end);
    Tensor logits = converted(linear(rows, weight), wide);
    if (!wants_gradients) {
      total = total + loss(softcap > 0 ? tanh(logits / softcap) * softcap : logits, begin, end);
      continue;
    }
    const WithGrad recorded;
    require_grad(logits);
    const Tensor piece = loss(softcap > 0 ? tanh(logits / softcap) * softcap : logits, begin, end);
    const Tensor dlogits =
        gradients({piece}, {logits}, {full({}, 1, piece.dtype(), piece.device())}).front();
    total = total + detach(piece);
    if (dlogits.defined()) {
      add_share(dense(converted(dlogits, x.dtype())), rows, weight,
                dx.defined() ? sliced(dx, 0, begin, end) : dx, dweight);
    } else if (dx.defined()) {
      Tensor part = sliced(dx, 0, begin, end);
      fill(part, 0);
    }
  }
  return record(op, total, early_gradients(op, {given, given_weight}, {dx, dweight}));
}

}  // namespace ingot
