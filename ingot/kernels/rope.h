#pragma once

#include <cstdint>

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot {

// Which features of a head form a rotated pair. half_split: i with i + n/2 (Hugging Face,
// GPT-NeoX); interleaved: 2i with 2i + 1 (the paper, llama2.c).
enum class RopeLayout : uint8_t { half_split, interleaved };

}  // namespace ingot

namespace ingot::kernels {

enum class Turn : uint8_t { forward, backward };

// Each pair (u, v) of the first n features of a head becomes (u c − v s, u s + v c); with
// Turn::backward, (u c + v s, v c − u s). The features from n on are copied.
// x: [B, T, H, C], the [H, C] of a token contiguous   cos, sin: [T, n/2] or [B, T, n/2], dense, in
// the compute type of x   y: [B, T, H, C], dense, of x's dtype
void rope(const Cpu& on, const ConstView& x, const ConstView& cos, const ConstView& sin,
          RopeLayout layout, Turn turn, const View& y);

// cos_{r,p} = cos(position_r · base^(−2p/n)), sin likewise, computed in f64.
// positions: i64, dense, of any shape   cos, sin: [positions..., n/2], f32 or f64
void rope_tables(const Cpu& on, const ConstView& positions, double base, const View& cos,
                 const View& sin);

}  // namespace ingot::kernels
