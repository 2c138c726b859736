#include "ingot/models/latent_config.h"

#include <cmath>

#include "ingot/base/error.h"

namespace ingot {

void complete_latent(LatentConfig& c, bool latent, int64_t head_dim) {
  c.kv_rank = c.kv_rank == 0 && latent ? 4 * head_dim : c.kv_rank;
  if (c.kv_rank == 0) {
    check(c.q_rank == 0 && c.nope_dim == 0 && c.rope_dim == 0 && c.value_dim == 0,
          ErrorKind::config, "model.latent: q_rank is ", c.q_rank, ", nope_dim ", c.nope_dim,
          ", rope_dim ", c.rope_dim, ", value_dim ", c.value_dim,
          ", but kv_rank is 0, which means usual attention; set kv_rank");
    return;
  }
  c.nope_dim = c.nope_dim > 0 ? c.nope_dim : head_dim;
  c.rope_dim = c.rope_dim > 0 ? c.rope_dim : (head_dim / 2 + 1) / 2 * 2;
  c.value_dim = c.value_dim > 0 ? c.value_dim : head_dim;
  check(c.rope_dim % 2 == 0, ErrorKind::config,
        "model.latent: rope_dim must be even, features turn in pairs: got ", c.rope_dim);
}

nn::LatentAttentionShape latent_shape(const LatentConfig& c, const nn::RotaryConfig& rope) {
  nn::LatentAttentionShape s;
  s.q_rank = c.q_rank;
  s.kv_rank = c.kv_rank;
  s.nope_dim = c.nope_dim;
  s.rope_dim = c.rope_dim;
  s.value_dim = c.value_dim;
  s.rope_layout = nn::rotary_layout(rope);
  s.scale = 1 / std::sqrt(static_cast<double>(c.nope_dim + c.rope_dim));
  if (rope.scaling == "yarn" && rope.mscale_all_dim > 0) {
    const double mscale = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1;
    s.scale *= mscale * mscale;
  }
  return s;
}

}  // namespace ingot
