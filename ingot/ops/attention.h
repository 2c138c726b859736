#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

struct AttentionOptions {
  bool causal = true;
  double scale = 0;    // of the scores; 0 means 1/√C
  int64_t window = 0;  // sliding window: a query sees itself and the window − 1 keys before it; 0 =
                       // all. Without causal: |i − j| < window
  double softcap = 0;  // scores become cap · tanh(score / cap); 0 = off. Gemma 2, arXiv:2408.00118
  int64_t query_offset =
      0;  // position of query 0 among the keys (decoding with a KV cache): S − T usually
  Tensor documents{};     // [B, S] i32, document id of every key, and of the query at its position:
                          // attention stays inside equal ids; undefined = one document
  Tensor key_lengths{};   // [B] i32: keys at and beyond are padding; undefined = none
  Tensor alibi_slopes{};  // [H] f32: adds −slope·(i − j) to scores (Press et al. 2022,
                          // arXiv:2108.12409); undefined = none
  Tensor key_scales{};    // [P, S, K, 1] f32: keys in pages are i8, each key_scales · k
  Tensor value_scales{};  // [P, S, K, 1] f32: the same for values
  Tensor pages{};  // [B, N] i32, where keys and values lie in a pool of pages: key j of row b is
                   // token j % S of page pages[b, j / S], S the tokens of a page; undefined = side
                   // by side. With key_lengths, which count the queries too
};

// y_i = Σ_j softmax_j(scale · q_i·k_j) v_j per head, tiled with an online softmax: no T×T buffer
// exists in forward or backward (Dao et al. 2022, arXiv:2205.14135). Query head h reads key/value
// head h / (H/K). q: [B, T, H, C]   k, v: [B, S, K, C]   y: [B, T, H, C]. Rows ([H, C] of one
// token) may be strided: slices of a fused projection are read in place. A query that sees no key
// gives 0. Scores and sums in f32 (f64 for f64). Differentiable once; gradients do not depend on
// the run. Keys that are hidden have weight 0, so a value that is not finite may still reach some
// queries that do not see it (0 · ∞).
// FLOPs counted: 4·B·H·C·n forward and 2.5 times that backward (which recomputes the scores), n the
// pairs (i, j) that causal and window leave visible in one head; documents and key_lengths are not
// looked into, so that the count is the same on the meta device.
// With pages k and v are [P, S, K, C], S a divisor or a multiple of 64; there are at most 4 queries
// a row, the last of its keys; query_offset is not read, documents are refused, and nothing is
// recorded. FLOPs are counted as if every page were full. There k and v may be i8 with a scale for
// each token and head (int8_heads.h); q is f32, bf16 or f16 then.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {});

}  // namespace ingot
