#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Which keys a query sees and how scores are formed; ops/attention.h explains the fields. Views
// that do not apply have null data; the others are dense.
struct AttentionRule {
  bool causal = true;
  double scale = 1;
  int64_t window = 0;
  double softcap = 0;
  int64_t query_offset = 0;
  ConstView documents{};     // [B, S] i32
  ConstView key_lengths{};   // [B] i32
  ConstView alibi_slopes{};  // [H] f32
  ConstView pages{};         // [B, N] i32: where keys lie; then k and v are [P, S/N, K, C]
  ConstView key_scales{};    // [P, S/N, K, 1] f32, with pages of i8: a key is scale · code
  ConstView value_scales{};  // the same for values
};

// q, dy: [B, T, H, C]   k, v: [B, S, K, C], the [H, C] (or [K, C]) of a token contiguous; with
// pages in the forward of at most 4 queries only, the last ones of each row's keys y, dq: [B, T, H,
// C]   dk, dv: [B, S, K, C], dense lse, delta: [B, H, T], dense, in the compute type (f32; f64 for
// f64) workspace: dense, of the compute type, at least as long as the function before it says. Sums
// are in the compute type.

// y_i = Σ_j p_ij v_j with p_i = softmax of the scores s_ij;  lse_i = log2 Σ_j 2^(s_ij log2 e), +∞
// for a query that sees no key.
int64_t attention_workspace(const Shape& q, const Shape& k, DType dtype);  // k: [B, S, K, C]
void attention(const Cpu& on, const ConstView& q, const ConstView& k, const ConstView& v,
               const AttentionRule& rule, const View& y, const View& lse, const View& workspace);

// With D_i = Σ_c dy_ic y_ic (written to delta), p_ij recomputed from lse and
// ds_ij = p_ij (dy_i·v_j − D_i):
//   dv_j = Σ_i p_ij dy_i,   dq_i = scale Σ_j ds_ij k_j,   dk_j = scale Σ_i ds_ij q_i,
// summed over the query heads of a group, in an order that depends on the shapes and the number of
// threads alone.
int64_t attention_backward_workspace(const Shape& q, const Shape& k, DType dtype);
struct AttentionSaved {
  ConstView q, k, v, y, lse;
};
struct AttentionGradients {
  View dq, dk, dv;
};
void attention_backward(const Cpu& on, const AttentionSaved& saved, const ConstView& dy,
                        const AttentionRule& rule, const AttentionGradients& out, const View& delta,
                        const View& workspace);

}  // namespace ingot::kernels
