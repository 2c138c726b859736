#include "ingot/nn/latent_attention.h"

#include <algorithm>
#include <cmath>

#include "ingot/ops/attention.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"

namespace ingot::nn {
namespace {

int64_t key_dim(const LatentAttentionShape& s) { return s.nope_dim + s.rope_dim; }

// Zeros behind the features of every head, up to `width`: they change neither scores nor sums.
Tensor widened(const Tensor& x, int64_t width) {
  return x.size(-1) == width ? x : pad(x, -1, 0, width - x.size(-1));
}

// [B, 1, H, n] → [H, B, n]: the heads as a batch of matrices, and back.
Tensor by_head(const Tensor& x) { return transpose(squeeze(x, 1), 0, 1); }
Tensor by_token(const Tensor& x) { return unsqueeze(transpose(x, 0, 1), 1); }

}  // namespace

LatentAttention::LatentAttention(const LatentAttentionShape& s, DType dtype, Device device)
    : wq(s.q_rank > 0 ? s.q_rank : s.width, s.heads * key_dim(s), Bias::no, dtype, device),
      wkv_a(s.width, s.kv_rank + s.rope_dim, s.bias, dtype, device),
      kv_norm(NormKind::rms, s.kv_rank, s.norm_eps, dtype, device),
      wkv_b(s.kv_rank, s.heads * (s.nope_dim + s.value_dim), Bias::no, dtype, device),
      wo(s.heads * s.value_dim, s.width, s.bias, dtype, device, Role::residual),
      shape_(s) {
  check(s.rope_dim > 0 && s.rope_dim % 2 == 0, ErrorKind::argument,
        "latent attention: features turn in pairs: rope_dim is ", s.rope_dim,
        "; give an even number above 0");
  if (s.q_rank > 0) {
    wq_a.emplace(s.width, s.q_rank, s.bias, dtype, device);
    q_norm.emplace(NormKind::rms, s.q_rank, s.norm_eps, dtype, device);
  }
}

LatentAttention::Query LatentAttention::query_of(const Tensor& x, const Context& context) const {
  const LatentAttentionShape& s = shape_;
  const Tensor q = wq_a ? wq((*q_norm)((*wq_a)(x))) : wq(x);
  const TensorList parts =
      split(reshape(q, {x.size(0), x.size(1), s.heads, key_dim(s)}), {s.nope_dim, s.rope_dim});
  const bool turns = context.rope.cos.defined();
  return {parts[0],
          turns ? rope(parts[1], context.rope.cos, context.rope.sin, s.rope_layout) : parts[1]};
}

// [c; kʳ] of every token: [B, T, 1, kv_rank + rope_dim].
Tensor LatentAttention::latent_of(const Tensor& x, const Context& context) const {
  const LatentAttentionShape& s = shape_;
  const TensorList parts = split(wkv_a(x), {s.kv_rank, s.rope_dim});
  Tensor turned = unsqueeze(parts[1], 2);
  if (context.rope.cos.defined()) {
    turned = rope(turned, context.rope.cos, context.rope.sin, s.rope_layout);
  }
  return concat({unsqueeze(kv_norm(parts[0]), 2), turned}, -1);
}

// Every head with keys and values of its own. Narrower ones are padded: the kernels take one width.
Tensor LatentAttention::expanded(const Query& q, const Tensor& latent,
                                 const AttentionOptions& options) const {
  const LatentAttentionShape& s = shape_;
  const int64_t rows = latent.size(0);
  const int64_t keys = latent.size(1);
  const TensorList stored = split(latent, {s.kv_rank, s.rope_dim});
  const Tensor made = wkv_b(squeeze(stored[0], 2));
  const TensorList parts = split(reshape(made, {rows, keys, s.heads, s.nope_dim + s.value_dim}),
                                 {s.nope_dim, s.value_dim});
  const Tensor shared = expand(stored[1], {rows, keys, s.heads, s.rope_dim});
  const int64_t width = std::max(key_dim(s), s.value_dim);
  const Tensor y =
      attention(widened(concat({q.nope, q.rope}, -1), width),
                widened(concat({parts[0], shared}, -1), width), widened(parts[1], width), options);
  return slice(y, -1, 0, s.value_dim);
}

// One query a row against the latents themselves, as one key and value head.
Tensor LatentAttention::absorbed(const Query& q, const Tensor& latent,
                                 const AttentionOptions& options) const {
  const LatentAttentionShape& s = shape_;
  const TensorList maps = split(
      reshape(wkv_b.plain_weight(q.nope.dtype()), {s.heads, s.nope_dim + s.value_dim, s.kv_rank}),
      {s.nope_dim, s.value_dim}, 1);
  const Tensor inward = by_token(matmul(by_head(q.nope), maps[0]));  // [B, 1, H, kv_rank]
  const Tensor y = attention(concat({inward, q.rope}, -1), latent, latent, options);
  const Tensor seen = by_head(slice(y, -1, 0, s.kv_rank));
  return by_token(matmul(seen, transpose(maps[1])));
}

Tensor LatentAttention::operator()(const Tensor& x, const Context& context) const {
  const LatentAttentionShape& s = shape_;
  AttentionOptions options;
  options.scale = s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(key_dim(s)));
  options.documents = context.documents;
  options.key_lengths = context.key_lengths;
  const Query q = query_of(x, context);
  Tensor latent = latent_of(x, context);
  if (context.cache != nullptr) {
    const Tensor nothing = slice(latent, -1, 0, 0);
    latent = context.cache->extend(context.layer, latent, nothing, options).k;
    if (options.key_scales.defined()) {
      options.value_scales = options.key_scales;  // the latents are the values too
    }
  }
  const bool single = context.cache != nullptr && x.size(1) == 1;
  const Tensor y = single ? absorbed(q, latent, options) : expanded(q, latent, options);
  return wo(reshape(y, {x.size(0), x.size(1), s.heads * s.value_dim}));
}

void LatentAttention::visit(Visitor& v) {
  v("wq_a", wq_a);
  v("q_norm", q_norm);
  v("wq", wq);
  v("wkv_a", wkv_a);
  v("kv_norm", kv_norm);
  v("wkv_b", wkv_b);
  v("wo", wo);
}

}  // namespace ingot::nn
