#pragma once

#include "ingot/nn/block.h"
#include "ingot/nn/linear.h"
#include "ingot/nn/norm.h"

namespace ingot::nn {

// What one norm of queries and keys runs over.
enum class QkNormSpan : uint8_t { head, projection };

struct AttentionShape {
  int64_t width = 0;     // D
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // K: H for multi-head, 1 for multi-query, between for grouped-query
  int64_t head_dim = 0;  // C
  Bias bias = Bias::no;  // of queries, keys and values
  Bias output_bias = Bias::no;
  NormKind qk_norm = NormKind::none;  // of queries and keys
  QkNormSpan qk_norm_span = QkNormSpan::head;
  double norm_eps = 1e-5;
  double gain_offset = 0;
  RopeLayout rope_layout = RopeLayout::half_split;
  bool causal = true;
  double scale = 0;    // of the scores; 0: 1/√C
  int64_t window = 0;  // keys a query sees, itself included; 0: all
  double softcap = 0;  // of the scores; 0: none
};

// Keys and values that every query sees besides those of its text: learnt ones that stand before
// its first token, without a position.
class KeyPrefix {
 public:
  virtual ~KeyPrefix() = default;
  virtual bool active() const = 0;
  virtual Tensor keys() const = 0;    // [P, K, C]
  virtual Tensor values() const = 0;  // [P, K, C]
};

// y = concat_h(softmax(q_h k_hᵀ · scale) v_h) Woᵀ with q, k, v = x Wqᵀ, x Wkᵀ, x Wvᵀ split into
// heads. x, y: [B, T, D]. Vaswani et al. 2017, section 3.2.2; grouped heads: Ainslie et al. 2023,
// arXiv:2305.13245.
class Attention : public Module {
 public:
  Attention(const AttentionShape& shape, DType dtype, Device device);

  Tensor operator()(const Tensor& x, const Context& context) const;
  void visit(Visitor& v) override;

  Linear wq;  // [H·C, D]
  Linear wk;  // [K·C, D]
  Linear wv;  // [K·C, D]
  Linear wo;  // [D, H·C]
  std::optional<Norm> q_norm, k_norm;
  std::shared_ptr<const KeyPrefix> prefix;  // its parameters are its owner's

  const AttentionShape& shape() const { return shape_; }

 private:
  AttentionShape shape_;
};

}  // namespace ingot::nn
