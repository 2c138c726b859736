#include "ingot/models/bert.h"

#include "ingot/ops/counted_places.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

nn::TransformerOptions layer_options(const BertConfig& c) {
  check(c.heads > 0 && c.width % c.heads == 0, ErrorKind::config,
        "bert: width must be a multiple of heads: width is ", c.width, ", heads is ", c.heads);
  nn::TransformerOptions o;
  o.attention.width = c.width;
  o.attention.heads = c.heads;
  o.attention.kv_heads = c.heads;
  o.attention.head_dim = c.width / c.heads;
  o.attention.bias = nn::Bias::yes;
  o.attention.output_bias = nn::Bias::yes;
  o.attention.causal = false;
  o.mlp = {c.width, c.hidden, nn::activation_named(c.activation), nn::Bias::yes};
  o.norm = nn::NormKind::layer;
  o.norm_eps = c.norm_eps;
  o.norm_position = nn::NormPosition::post;
  o.dropout = c.dropout;
  return o;
}

}  // namespace

Bert::Bert(const BertConfig& c, DType dtype, Device device)
    : config_(c),
      words(c.vocab, c.width, dtype, device, c.padding_id),
      places(c.context, c.width, dtype, device),
      token_types(c.token_types, c.width, dtype, device),
      embedding_norm(nn::NormKind::layer, c.width, c.norm_eps, dtype, device),
      dropout(c.dropout) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    layers.push_back(std::make_unique<nn::TransformerBlock>(layer_options(c), dtype, device));
  }
  if (c.mlm) {
    head_dense.emplace(c.width, c.width, nn::Bias::yes, dtype, device);
    head_norm.emplace(nn::NormKind::layer, c.width, c.norm_eps, dtype, device);
    head_bias = nn::parameter({c.vocab}, dtype, device);
  }
  if (c.mlm && !c.tied) {
    head.emplace(c.width, c.vocab, nn::Bias::no, dtype, device);
  }
  if (c.labels > 0) {
    pooler.emplace(c.width, c.width, nn::Bias::yes, dtype, device);
    classifier.emplace(c.width, c.labels, nn::Bias::yes, dtype, device);
  }
  nn::name_dropout_sites(*this);
}

Tensor Bert::hidden(const Tensor& ids, const BertInfo& info) const {
  check(ids.rank() == 2, ErrorKind::shape, "bert: takes ids of shape [B, T]: got ", ids.shape());
  check(ids.size(1) <= config_.context, ErrorKind::argument,
        "bert: the sequence is longer than the learned positions: ", ids.size(1),
        " tokens, context ", config_.context);
  nn::Context context;
  context.key_lengths = info.key_lengths;
  context.randomness = *randomness_;
  const Tensor types =
      info.token_types.defined() ? info.token_types : zeros(ids.shape(), DType::i64, ids.device());
  Tensor x =
      words(ids) + token_types(types) + places(arange(ids.size(1), DType::i64, ids.device()));
  x = dropout(embedding_norm(x), context.randomness);  // [B, T, D]
  for (const auto& layer : layers) {
    x = (*layer)(x, context);
    ++context.layer;
  }
  return x;
}

Tensor Bert::logits_of(const Tensor& hidden) const {
  check(head_dense.has_value(), ErrorKind::argument,
        "bert: this model has no head that names masked words; set mlm");
  const nn::Activation activation = nn::activation_named(config_.activation);
  const Tensor x = (*head_norm)(nn::activate((*head_dense)(hidden), activation));
  return linear(x, head ? head->weight : words.weight, head_bias);
}

Tensor Bert::logits(const Tensor& ids, const BertInfo& info) const {
  return logits_of(hidden(ids, info));
}

Tensor Bert::masked_loss(const Tensor& ids, const Tensor& labels, const BertInfo& info) const {
  const Tensor counted = counted_places(labels);
  const Tensor rows = reshape(hidden(ids, info), {ids.elements(), config_.width});
  const Tensor wanted = index_select(reshape(labels, {labels.elements()}), 0, counted);
  return cross_entropy(logits_of(index_select(rows, 0, counted)), wanted, Reduction::sum);
}

Tensor Bert::class_logits(const Tensor& ids, const BertInfo& info) const {
  check(classifier.has_value(), ErrorKind::argument, "bert: this model has no classifier");
  const Tensor first = squeeze(slice(hidden(ids, info), 1, 0, 1), 1);  // [B, D]
  return (*classifier)(dropout(tanh((*pooler)(first)), *randomness_));
}

Tensor Bert::sentence_embedding(const Tensor& ids, const BertInfo& info) const {
  const Tensor x = hidden(ids, info);
  if (!info.key_lengths.defined()) {
    return mean(x, 1);
  }
  const Tensor lengths = unsqueeze(converted(info.key_lengths, DType::f32), -1);  // [B, 1]
  const Tensor columns = arange(ids.size(1), DType::f32, ids.device());
  const Tensor shares = converted(greater(lengths, columns), DType::f32) / lengths;  // [B, T]
  return sum(x * unsqueeze(converted(shares, x.dtype()), -1), 1);
}

void Bert::visit(nn::Visitor& v) {
  v("words", words);
  v("places", places);
  v("token_types", token_types);
  v("embedding_norm", embedding_norm);
  v("dropout", dropout);
  v("layers", layers);
  v("head_dense", head_dense);
  v("head_norm", head_norm);
  if (head_bias.defined()) {
    v("head_bias", head_bias, nn::Role::bias);
  }
  v("head", head);
  v("pooler", pooler);
  v("classifier", classifier);
}

}  // namespace ingot
