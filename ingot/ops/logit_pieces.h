#pragma once

#include <algorithm>

#include "ingot/device/on_device.h"
#include "ingot/kernels/cross_entropy.h"
#include "ingot/kernels/matmul.h"
#include "ingot/tensor/layout.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// What operations over logits x Wᵀ share that never hold them whole: rows of x, the weight, and the
// logits of one piece of rows at a time. x: [..., D]   weight: [V, D]   labels: [...] i64
class LogitPieces {
 public:
  LogitPieces(const Tensor& x, const Tensor& weight, const Tensor& labels);

  // Throws Error(dtype) or Error(shape) naming `op`.
  static void check_inputs(const char* op, const Tensor& x, const Tensor& weight,
                           const Tensor& labels);
  // Throws Error(argument) naming `op` and a label outside [0, V).
  void check_labels(const char* op, int64_t ignore_index) const;

  const Tensor& rows() const { return x_; }         // [N, D]
  const Tensor& weight() const { return weight_; }  // [V, D]
  const Tensor& labels() const { return labels_; }  // [N]
  // FLOPs of one product of x with weight, or of a gradient of it.
  int64_t flops() const { return 2 * x_.elements() * weight_.size(0); }

  // f(on, first row, end, logits of these rows) for each piece; the logits may be written over.
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

  // Adds a piece's share to the gradients that are defined: dx = dlogits W, dW += dlogitsᵀ x.
  template <class Device>
  void add_gradients(const Device& on, int64_t begin, int64_t end, const Tensor& dlogits,
                     const Tensor& dx, Tensor& dweight) const {
    if (dx.defined()) {
      Tensor part = sliced(reshaped(dx, x_.shape()), 0, begin, end);
      kernels::matmul(on, dlogits.view(), weight_.view(), part.fresh_view());
    }
    if (dweight.defined()) {
      kernels::matmul(on, transposed(dlogits, 0, 1).view(), sliced(x_, 0, begin, end).view(),
                      dweight.fresh_view(),
                      begin == 0 ? kernels::Accumulate::no : kernels::Accumulate::yes);
    }
  }

 private:
  Tensor x_, weight_, labels_;
  Tensor logits_;  // [R, V]
};

}  // namespace ingot
