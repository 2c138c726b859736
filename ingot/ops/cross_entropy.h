#pragma once

#include <limits>

#include "ingot/tensor/tensor.h"

namespace ingot {

enum class Reduction : uint8_t { none, sum, mean };  // mean: over the labels that count

struct CrossEntropyOptions {
  int64_t ignore_index = -100;  // rows with this label count for nothing
  double label_smoothing =
      0;  // e: the target is (1 − e) one-hot + e/V (Szegedy et al. 2016; PyTorch's convention)
  double z_loss = 0;   // adds z · logsumexp² per row (Chowdhery et al. 2022, arXiv:2204.02311)
  double softcap = 0;  // logits become cap · tanh(logit / cap) first
};

// −Σ_v target_v log softmax(logits)_v per row.   logits: [..., V]   labels: [...] i64 in [0, V) or
// ignore_index. none → [...] , sum/mean → []. Result in f32 for half types. Error(argument) naming
// a label out of range.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction,
                     const CrossEntropyOptions& options = {});

// The sum over rows of cross_entropy(x Wᵀ, labels), in pieces of rows: the logits never exist
// whole, neither does their gradient. x: [..., D]   weight: [V, D]   labels: [...] i64   → [] (f32;
// f64 for f64). With gradients wanted, dx and dW are computed in the forward already (dW in
// accumulator(dtype)), and only scaled in the backward.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                            const CrossEntropyOptions& options = {});

struct LogProbabilityOptions {
  double softcap = 0;  // logits become cap · tanh(logit / cap) first
  // Rows with this label have 0 and no gradient; by default every label counts.
  int64_t ignore_index = std::numeric_limits<int64_t>::min();
};

// log softmax(x Wᵀ)_label per row, in pieces of rows: the logits never exist whole, neither does
// their gradient. x: [..., D]   weight: [V, D]   labels: [...] i64   → [...] (f32; f64 for f64).
// The gradient of a row depends on what is made of its log-probability, so the backward computes
// the logits a second time (2 · N·D·V FLOPs more than the products themselves). Differentiable
// once.
Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& labels,
                              const LogProbabilityOptions& options = {});

}  // namespace ingot
