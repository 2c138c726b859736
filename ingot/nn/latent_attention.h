#pragma once

#include "ingot/nn/block.h"
#include "ingot/nn/linear.h"
#include "ingot/nn/norm.h"

namespace ingot::nn {

struct LatentAttentionShape {
  int64_t width = 0;      // D
  int64_t heads = 0;      // H
  int64_t q_rank = 0;     // width of the queries' latent; 0: queries come from x directly
  int64_t kv_rank = 0;    // width of the latent that keys and values come from
  int64_t nope_dim = 0;   // features of a query or key without position
  int64_t rope_dim = 0;   // features that turn with position; the key's are shared by all heads
  int64_t value_dim = 0;  // features of a value
  Bias bias = Bias::no;   // of the maps down from x, and of the output map
  double norm_eps = 1e-6;
  RopeLayout rope_layout = RopeLayout::interleaved;
  double scale = 0;  // of the scores; 0: 1/√(nope_dim + rope_dim)
};

// Multi-head latent attention. With c = norm(x Wdkvᵀ), kʳ = rope(x Wkrᵀ), cq = norm(x Wdqᵀ):
//   k_h = [c Wuk_hᵀ; kʳ],   v_h = c Wuv_hᵀ,   q_h = [cq Wuq_hᵀ; rope(cq Wqr_hᵀ)]
//   y = concat_h(softmax(q_h k_hᵀ · scale) v_h) Woᵀ
// A cache holds [c; kʳ] of a token, kv_rank + rope_dim numbers for all heads together; where one
// token is read at a time the heads attend to these as they are, with Wuk moved to the query and
// Wuv behind the sum. x, y: [B, T, D]. DeepSeek-AI 2024, arXiv:2405.04434, section 2.1, equations
// 9 to 19 and appendix C.
class LatentAttention : public Module {
 public:
  LatentAttention(const LatentAttentionShape& shape, DType dtype, Device device);

  Tensor operator()(const Tensor& x, const Context& context) const;
  void visit(Visitor& v) override;

  std::optional<Linear> wq_a;  // [q_rank, D]
  std::optional<Norm> q_norm;
  Linear wq;     // [H·(nope_dim + rope_dim), q_rank or D]
  Linear wkv_a;  // [kv_rank + rope_dim, D]: c before its norm, then kʳ
  Norm kv_norm;
  Linear wkv_b;  // [H·(nope_dim + value_dim), kv_rank]: of each head Wuk, then Wuv
  Linear wo;     // [D, H·value_dim]

 private:
  struct Query {
    Tensor nope, rope;  // [B, T, H, nope_dim] and [B, T, H, rope_dim], turned
  };
  Query query_of(const Tensor& x, const Context& context) const;
  Tensor latent_of(const Tensor& x, const Context& context) const;
  Tensor expanded(const Query& q, const Tensor& latent, const AttentionOptions& options) const;
  Tensor absorbed(const Query& q, const Tensor& latent, const AttentionOptions& options) const;

  LatentAttentionShape shape_;
};

}  // namespace ingot::nn
