#pragma once

#include <cstdint>

#include "ingot/base/range.h"
#include "ingot/nn/latent_attention.h"
#include "ingot/nn/rotary.h"

namespace ingot {

// Multi-head latent attention in place of the usual one (nn/latent_attention.h).
struct LatentConfig {
  int64_t kv_rank = 0;
  int64_t q_rank = 0;
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;

  template <class V>
  void describe(V& v) {
    v("kv_rank", kv_rank, at_least(0),
      "width of the latent that keys and values come from; 0: usual attention");
    v("q_rank", q_rank, at_least(0), "width of the latent that queries come from; 0: none");
    v("nope_dim", nope_dim, at_least(0), "features of a head without position; 0: head_dim");
    v("rope_dim", rope_dim, at_least(0), "features of a head that turn; 0: half of head_dim");
    v("value_dim", value_dim, at_least(0), "features of a value; 0: head_dim");
  }
};

// Fills in the open fields; `latent` says whether the architecture has latent attention. Throws
// Error(config) where fields contradict each other.
void complete_latent(LatentConfig& config, bool latent, int64_t head_dim);

// What one layer is built from; the config must be complete. The scale holds what yarn adds:
// mscale² with mscale = 0.1 mscale_all_dim ln(factor) + 1.
nn::LatentAttentionShape latent_shape(const LatentConfig& config, const nn::RotaryConfig& rope);

}  // namespace ingot
