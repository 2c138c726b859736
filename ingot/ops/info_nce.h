#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Which sides are told apart: keys for every query, or queries for every key too (their mean).
enum class Contrast : bool { one_way, both_ways };

// s_ij = cos(q_i, k_j) / τ.   query: [N, D]   key: [M, D] → [N, M]. A vector of zeros has cosine 0.
Tensor scaled_cosines(const Tensor& query, const Tensor& key, double temperature);

// The mean over i of −log softmax_j(s_ij) at j = i: key i belongs to query i, the others of the
// batch do not. query, key: [N, D], N > 0 → []. van den Oord et al. 2018, arXiv:1807.03748,
// equation 4; both ways: Radford et al. 2021, arXiv:2103.00020, figure 3.
Tensor info_nce(const Tensor& query, const Tensor& key, double temperature,
                Contrast contrast = Contrast::one_way);

}  // namespace ingot
