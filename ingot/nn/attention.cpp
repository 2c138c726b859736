#include "ingot/nn/attention.h"

#include "ingot/ops/attention.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

// [B, T, heads·C] → [B, T, heads, C]
Tensor in_heads(const Tensor& x, int64_t heads, int64_t head_dim) {
  return reshape(x, {x.size(0), x.size(1), heads, head_dim});
}

// [P, K, C] before the keys or values of every row.
Tensor behind(const Tensor& prefix, const Tensor& x) {
  const Shape shape = {x.size(0), prefix.size(0), x.size(2), x.size(3)};
  return concat({expand(unsqueeze(prefix, 0), shape), x}, int64_t{1});
}

// Keys or values [P, S, K, C] in pages, side by side: [B, N·S, K, C].
Tensor side_by_side(const Tensor& pool, const Tensor& pages) {
  check(is_float(pool.dtype()), ErrorKind::config,
        "attention: a learnt prefix goes with keys and values in the model's type, not in 8 bits");
  const Tensor chosen = index_select(pool, 0, converted(reshape(pages, {-1}), DType::i64));
  return reshape(chosen, {pages.size(0), pages.size(1) * pool.size(1), pool.size(2), pool.size(3)});
}

// What every query sees besides is numbered before the text.
void make_room(int64_t prefix, AttentionOptions& options) {
  check(!options.documents.defined() && options.window == 0, ErrorKind::config,
        "attention: a learnt prefix goes with one document a row and without a window; set "
        "data.packing = \"none\"");
  options.query_offset += prefix;
  if (options.key_lengths.defined()) {
    options.key_lengths =
        options.key_lengths + full(options.key_lengths.shape(), static_cast<double>(prefix),
                                   options.key_lengths.dtype(), options.key_lengths.device());
  }
}

}  // namespace

Attention::Attention(const AttentionShape& s, DType dtype, Device device)
    : wq(s.width, s.heads * s.head_dim, s.bias, dtype, device),
      wk(s.width, s.kv_heads * s.head_dim, s.bias, dtype, device),
      wv(s.width, s.kv_heads * s.head_dim, s.bias, dtype, device),
      wo(s.heads * s.head_dim, s.width, s.output_bias, dtype, device, Role::residual),
      shape_(s) {
  check(s.kv_heads > 0 && s.heads % s.kv_heads == 0, ErrorKind::argument,
        "attention: query heads do not divide among key heads: heads is ", s.heads,
        ", kv_heads is ", s.kv_heads);
  if (s.qk_norm != NormKind::none) {
    const bool whole = s.qk_norm_span == QkNormSpan::projection;
    const int64_t q_width = whole ? s.heads * s.head_dim : s.head_dim;
    const int64_t k_width = whole ? s.kv_heads * s.head_dim : s.head_dim;
    q_norm.emplace(s.qk_norm, q_width, s.norm_eps, dtype, device, s.gain_offset);
    k_norm.emplace(s.qk_norm, k_width, s.norm_eps, dtype, device, s.gain_offset);
  }
}

Tensor Attention::operator()(const Tensor& x, const Context& context) const {
  const AttentionShape& s = shape_;
  TensorList projected = apply_together(x, {&wq, &wk, &wv});
  if (q_norm && s.qk_norm_span == QkNormSpan::projection) {
    projected[0] = (*q_norm)(projected[0]);
    projected[1] = (*k_norm)(projected[1]);
  }
  Tensor q = in_heads(projected[0], s.heads, s.head_dim);
  Tensor k = in_heads(projected[1], s.kv_heads, s.head_dim);
  Tensor v = in_heads(projected[2], s.kv_heads, s.head_dim);
  if (q_norm && s.qk_norm_span == QkNormSpan::head) {
    q = (*q_norm)(q);
    k = (*k_norm)(k);
  }
  if (context.rope.cos.defined()) {
    q = rope(q, context.rope.cos, context.rope.sin, s.rope_layout);
    k = rope(k, context.rope.cos, context.rope.sin, s.rope_layout);
  }
  AttentionOptions options;
  options.causal = s.causal;
  options.scale = s.scale;
  options.window = s.window;
  options.softcap = s.softcap;
  options.documents = context.documents;
  options.key_lengths = context.key_lengths;
  options.alibi_slopes = context.alibi_slopes;
  if (context.cache != nullptr) {
    const TokenCache::Stored stored = context.cache->extend(context.layer, k, v, options);
    k = stored.k;
    v = stored.v;
  }
  if (prefix && prefix->active()) {
    const Tensor first = prefix->keys();
    make_room(first.size(0), options);
    if (options.pages.defined()) {  // one query a row, which sees all of its keys
      k = side_by_side(k, options.pages);
      v = side_by_side(v, options.pages);
      options.pages = Tensor();
      options.causal = false;
    }
    k = behind(first, k);
    v = behind(prefix->values(), v);
  }
  const Tensor y = attention(q, k, v, options);  // [B, T, H, C]
  return wo(reshape(y, {x.size(0), x.size(1), s.heads * s.head_dim}));
}

void Attention::visit(Visitor& v) {
  v("wq", wq);
  v("wk", wk);
  v("wv", wv);
  v("wo", wo);
  v("q_norm", q_norm);
  v("k_norm", k_norm);
}

}  // namespace ingot::nn
