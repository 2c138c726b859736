#pragma once

#include <memory>

#include "ingot/models/decoder.h"

namespace ingot {

// A model with experts that starts as a dense one. In every layer that `moe` gives experts each of
// them is a copy of the layer's feed-forward map; routers start from N(0, 0.02²), drawn from
// `seed`; everything else is copied. A token's weights sum to 1, so its logits are those of the
// dense model. Types and device are the dense model's. Throws Error(config) where that would not
// hold: weights that are not renormalised or scaled, shared experts, another width, biases.
// Komatsuzaki et al. 2022, arXiv:2212.05055, section 3 (weights renormalised: appendix B.8).
std::unique_ptr<Decoder> upcycled(const Decoder& dense, const MoeConfig& moe, uint64_t seed);

}  // namespace ingot
