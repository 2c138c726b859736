#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// How far a student's distribution is from a teacher's, per row, from logits of both. With
// p = softmax(teacher / T) and q = softmax(student / T), natural logarithms:
//   β = 0        KL(p ‖ q), "forward": the student covers all that the teacher does
//   β = 1        KL(q ‖ p), "reverse": it keeps to what the teacher is sure of
//   in between   β KL(p ‖ m) + (1 − β) KL(q ‖ m) with m = β p + (1 − β) q, the generalized
//                Jensen–Shannon divergence
// Hinton et al. 2015, arXiv:1503.02531; Gu et al. 2024, arXiv:2306.08543 (reverse); Agarwal et al.
// 2024, arXiv:2306.13649, equation 1. teacher, student: [M, V] → [M]. No factor T² here.
Tensor divergence(const Tensor& teacher, const Tensor& student, double beta,
                  double temperature = 1);

// The k likeliest tokens of a teacher at temperature T, as they are kept in place of its logits.
struct TopLogprobs {
  Tensor tokens;  // [M, k] i64
  Tensor logps;   // [M, k] log p of each, over the whole vocabulary
};
// logits: [M, V], k ≤ V. Without history.
TopLogprobs top_logprobs(const Tensor& logits, int64_t k, double temperature = 1);

// KL(p ‖ q) where p is known for k tokens: the others count as one event with what is left,
//   Σ_k p_k (log p_k − log q_k) + p_rest (log p_rest − log q_rest)
// which is never more than KL(p ‖ q), and equal to it for k = V. student: [M, V] → [M]
Tensor top_divergence(const TopLogprobs& teacher, const Tensor& student, double temperature = 1);

}  // namespace ingot
