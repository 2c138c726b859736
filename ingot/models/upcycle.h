#pragma once

#include <memory>

#include "ingot/models/decoder.h"

namespace ingot {

// The parameters with which `model`, which has experts, starts as the dense model whose config and
// weights are given. In every layer of experts each of them is a copy of the layer's feed-forward
// map; routers start from N(0, 0.02²), drawn from `seed`; everything else is as in the dense one. A
// token's weights sum to 1, so its logits are those of the dense model. Throws Error(config) where
// that would not hold: weights that are not renormalised or scaled, shared experts, another width,
// biases. Komatsuzaki et al. 2022, arXiv:2212.05055, section 3, with renormalised weights.
TensorDict upcycled_weights(const Decoder& model, const DecoderConfig& dense,
                            const TensorDict& weights, uint64_t seed);

// The model itself, with the experts that `moe` says; types and device are the dense model's.
std::unique_ptr<Decoder> upcycled(const Decoder& dense, const MoeConfig& moe, uint64_t seed);

}  // namespace ingot
