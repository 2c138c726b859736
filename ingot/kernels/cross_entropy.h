#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// The loss of one row with logits x_v and label k. With l = x, or cap · tanh(x / cap) where softcap
// is not 0, target t_v = (1 − e) [v = k] + e/V and L = log Σ_v exp l_v:
//   loss = L − Σ_v t_v l_v + z L²
// A row labelled ignore_index has loss 0 and gradient 0. A row with NaN or +∞ has loss NaN.
struct CrossEntropyRule {
  int64_t ignore_index = -100;
  double label_smoothing = 0;  // e
  double z_loss = 0;           // z
  double softcap = 0;          // cap
};

// logits, dlogits: [N, V] dense, of one floating-point dtype   labels: [N] i64   losses: [N] in
// accumulator(dtype)   statistics: [N, 2] of that type: max l and Σ exp(l − max l), or absent.

// How many labels are not ignore_index. Throws Error(argument) naming `op` and a label outside
// [0, classes).
int64_t counted_labels(const Cpu& on, const char* op, const ConstView& labels, int64_t classes,
                       int64_t ignore_index);

void cross_entropy(const Cpu& on, const ConstView& logits, const ConstView& labels,
                   const CrossEntropyRule& rule, const View& losses, const View& statistics);

// dlogits_v = scale · dlosses · (p_v (1 + 2 z L) − t_v) · dl_v/dx_v, with p = softmax(l) in f32
// (f64 for f64), rounded once. dlosses: [N], any stride.
void cross_entropy_backward(const Cpu& on, const ConstView& logits, const ConstView& labels,
                            const ConstView& statistics, const CrossEntropyRule& rule,
                            const ConstView& dlosses, double scale, const View& dlogits);

// Both at once, with dlosses = 1: the logits become their gradient while a row is in the cache.
void cross_entropy_in_place(const Cpu& on, const View& logits, const ConstView& labels,
                            const CrossEntropyRule& rule, const View& losses);

// y = scale · Σ losses, summed in f64.   y: []
void sum_losses(const Cpu& on, const ConstView& losses, double scale, const View& y);

}  // namespace ingot::kernels
