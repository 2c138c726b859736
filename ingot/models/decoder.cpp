#include "ingot/models/decoder.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/nn/positions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// 0 … T−1 shifted by the tokens read before: [T], or [B, T] where rows have read different numbers.
Tensor usual_positions(int64_t tokens, const nn::TokenCache* cache, Device device) {
  if (cache == nullptr) {
    return arange(tokens, DType::i64, device);
  }
  const std::vector<int64_t> starts =
      cache->even() ? std::vector<int64_t>{cache->longest()} : cache->lengths();
  std::vector<int64_t> out;
  for (const int64_t start : starts) {
    for (int64_t t = 0; t < tokens; ++t) {
      out.push_back(start + t);
    }
  }
  const Shape shape =
      cache->even() ? Shape{tokens} : Shape{static_cast<int64_t>(starts.size()), tokens};
  return moved(tensor_of(out, shape), device);
}

// Positions the text spans: of packed documents, those of the longest.
int64_t length_of(const Tensor& ids, const nn::TokenCache* cache, const BatchInfo& info) {
  if (info.positions.defined() && info.positions.device().kind == DeviceKind::cpu &&
      info.positions.elements() > 0) {
    const Tensor places = dense(info.positions);
    return *std::ranges::max_element(places.values<int64_t>()) + 1;
  }
  return ids.size(1) + (cache != nullptr ? cache->longest() : 0);
}

// ids[b, t + k] at [b, t], and 0 beyond the end.
Tensor ahead(const Tensor& ids, int64_t k) {
  const int64_t there = std::max<int64_t>(ids.size(1) - k, 0);
  const Tensor nothing = zeros({ids.size(0), ids.size(1) - there}, ids.dtype(), ids.device());
  return concat({slice(ids, 1, ids.size(1) - there, ids.size(1)), nothing}, int64_t{1});
}

void add_routed(const TensorList& aside, std::vector<nn::Routed>& routed) {
  for (size_t i = 0; i + 1 < aside.size(); i += 2) {
    routed.push_back({aside[i], detach(aside[i + 1]), {}});
  }
}

}  // namespace

Decoder::Decoder(const DecoderConfig& config, DType dtype, Device device)
    : config_(complete(config)),
      embedding(config_.vocab, config_.width, dtype, device, config_.padding_id),
      dropout(config_.dropout),
      norm(layer_options(config_, 0).norm, config_.width, *config_.norm_eps, dtype, device,
           layer_options(config_, 0).gain_offset) {
  if (*config_.positions == "learned") {
    positions.emplace(config_.context, config_.width, dtype, device);
  }
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    layers.push_back(
        std::make_unique<nn::TransformerBlock>(layer_options(config_, layer), dtype, device));
  }
  if (!*config_.tied) {
    head.emplace(config_.width, config_.vocab, nn::Bias::no, dtype, device);
  }
  for (int64_t k = 0; k < config_.mtp.depth; ++k) {
    mtp.push_back(std::make_unique<MultiTokenHead>(
        config_.mtp, layer_options(config_, config_.layers + k), dtype, device));
  }
  nn::name_dropout_sites(*this);
}

Tensor Decoder::hidden(const Tensor& ids, const BatchInfo& info) const {
  return run(ids, nullptr, info);
}

Tensor Decoder::hidden(const Tensor& ids, const BatchInfo& info,
                       std::vector<nn::Routed>& routed) const {
  TensorList aside;
  Tensor y = run(ids, nullptr, info, &aside);
  add_routed(aside, routed);
  return y;
}

Decoder::Ahead Decoder::hidden_ahead(const Tensor& ids, const BatchInfo& info,
                                     std::vector<nn::Routed>& routed) const {
  TensorList aside;
  Tensor trunk;
  Ahead out{run(ids, nullptr, info, &aside, &trunk), {}};
  const Tensor places = info.positions.defined()
                            ? info.positions
                            : usual_positions(ids.size(1), nullptr, ids.device());
  nn::Context context = context_of(places, info);
  context.aside = &aside;
  context.layer = config_.layers;
  const LayerAngles angles = angles_of(places, length_of(ids, nullptr, info));
  const bool sequential = config_.mtp.kind == "sequential";
  Tensor before = sequential ? out.hidden : trunk;
  for (const auto& one : mtp) {
    context.rope = angles.of(config_, context.layer);
    const int64_t k = static_cast<int64_t>(out.further.size()) + 1;
    const Tensor h =
        (*one)(before, sequential ? scaled(embedding(ahead(ids, k))) : Tensor(), context);
    out.further.push_back(one->norm(h));
    before = sequential ? h : trunk;
    ++context.layer;
  }
  add_routed(aside, routed);
  return out;
}

Tensor Decoder::hidden(const Tensor& ids, nn::TokenCache& cache, const BatchInfo& info) const {
  const int64_t before = cache.longest() == 0 ? lead() : 0;
  Tensor y = run(ids, &cache, info);
  cache.advance(before + ids.size(1));
  return y;
}

int64_t Decoder::lead() const {
  const Tensor vectors = before_text ? before_text() : Tensor();
  return vectors.defined() ? vectors.size(0) : 0;
}

Tensor Decoder::run(const Tensor& ids, nn::TokenCache* cache, const BatchInfo& info,
                    TensorList* aside, Tensor* trunk) const {
  check(ids.rank() == 2, ErrorKind::shape, "decoder: takes ids of shape [B, T]: got ", ids.shape());
  const int64_t before = cache == nullptr || cache->longest() == 0 ? lead() : 0;
  check(before == 0 || (!info.positions.defined() && !info.documents.defined()),
        ErrorKind::argument,
        "decoder: learnt vectors before a text go with one document a row; set data.packing = "
        "\"none\"");
  const int64_t length = before + length_of(ids, cache, info);
  check(!positions || length <= config_.context, ErrorKind::argument,
        "decoder: the sequence is longer than the learned positions: ", length, " tokens, context ",
        config_.context);
  const Tensor places = info.positions.defined()
                            ? info.positions
                            : usual_positions(before + ids.size(1), cache, ids.device());
  nn::Context context = context_of(places, info);
  context.cache = cache;
  context.aside = aside;
  context.randomness.training = context.randomness.training && cache == nullptr;
  if (before > 0 && context.key_lengths.defined()) {
    context.key_lengths =
        context.key_lengths + full(context.key_lengths.shape(), static_cast<double>(before),
                                   context.key_lengths.dtype(), context.key_lengths.device());
  }
  Tensor x = dropout(embedded(ids, places), context.randomness);  // [B, P + T, D]
  const LayerAngles angles = angles_of(places, length);
  for (const auto& layer : layers) {
    if (trunk != nullptr) {
      *trunk = x;
    }
    context.rope = angles.of(config_, context.layer);
    x = (*layer)(x, context);
    ++context.layer;
  }
  return norm(before > 0 ? slice(x, 1, before, x.size(1)) : x);
}

Tensor Decoder::scaled(const Tensor& embedded) const {
  return config_.embedding_scale != 1 ? embedded * config_.embedding_scale : embedded;
}

Tensor Decoder::embedded(const Tensor& ids, const Tensor& places) const {
  Tensor x = embedding(ids);
  if (const int64_t before = places.size(-1) - ids.size(1); before > 0) {
    x = concat({expand(unsqueeze(before_text(), 0), {x.size(0), before, x.size(2)}), x},
               int64_t{1});
  }
  x = scaled(x);
  if (positions) {
    x = x + (*positions)(places);
  } else if (*config_.positions == "sinusoidal") {
    x = x + nn::sinusoidal_table(places, config_.width, x.dtype());
  }
  return x;
}

Decoder::LayerAngles Decoder::angles_of(const Tensor& places, int64_t length) const {
  LayerAngles out;
  if (*config_.positions != "rope") {
    return out;
  }
  const auto tables = [&](const nn::RotaryConfig& rope) {
    return nn::rotary_tables(rope, places, nn::rotated_features(rope, rotary_width(config_)),
                             config_.context, length, accumulator(dtype()));
  };
  out.usual = tables(config_.rope);
  out.windowed = config_.rope.local_base > 0 ? tables(nn::local_rotary(config_.rope)) : out.usual;
  return out;
}

RopeTables Decoder::LayerAngles::of(const DecoderConfig& config, int64_t layer) const {
  if (!is_rotated(config, layer)) {
    return {};
  }
  return is_windowed(config, layer) ? windowed : usual;
}

nn::Context Decoder::context_of(const Tensor& places, const BatchInfo& info) const {
  nn::Context context;
  if (*config_.positions == "alibi") {
    context.alibi_slopes = nn::alibi_slopes(config_.heads, places.device());
  }
  context.documents = info.documents;
  context.key_lengths = info.key_lengths;
  context.randomness = *randomness_;
  return context;
}

const Tensor& Decoder::output_weight() const { return head ? head->weight : embedding.weight; }

Tensor Decoder::logits_of(const Tensor& hidden) const {
  const Tensor y = head ? (*head)(hidden) : linear(hidden, embedding.weight);
  const double cap = config_.logit_softcap;
  return cap > 0 ? tanh(y / cap) * cap : y;
}

Tensor Decoder::logits(const Tensor& ids, const BatchInfo& info) const {
  return logits_of(hidden(ids, info));
}

bool Decoder::turns_anew(int64_t from, int64_t to) const {
  return *config_.positions == "rope" && nn::turns_anew(config_.rope, config_.context, from, to);
}

nn::KvCacheShape Decoder::cache_shape(int64_t pages, int64_t page_tokens) const {
  nn::KvCacheShape shape{config_.layers, pages, page_tokens, config_.kv_heads, config_.head_dim};
  if (const LatentConfig& latent = config_.latent; latent.kv_rank > 0) {
    shape.kv_heads = 1;
    shape.head_dim = latent.kv_rank + latent.rope_dim;
    shape.value_dim = 0;
  }
  return shape;
}

void Decoder::to_int8() {
  if (!head) {
    head.emplace(0, 0, nn::Bias::no, dtype(), cpu_device);
    head->weight = embedding.weight;
  }
  nn::to_int8(*this);
}

void Decoder::visit(nn::Visitor& v) {
  v("embedding", embedding);
  v("positions", positions);
  v("dropout", dropout);
  v("layers", layers);
  v("norm", norm);
  v("head", head);
  v("mtp", mtp);
}

Tensor documents_of(const Tensor& positions) {
  check(positions.rank() == 2, ErrorKind::shape,
        "documents_of: takes positions of shape [B, T]: got ", positions.shape());
  Tensor out = empty(positions.shape(), DType::i32);
  const Tensor source = dense(positions);
  const auto places = source.values<int64_t>();
  auto documents = out.mutable_values<int32_t>();
  const auto tokens = static_cast<size_t>(positions.size(1));
  for (size_t i = 0; i < places.size(); ++i) {
    const bool first = i % tokens == 0;
    const bool follows = !first && places[i] == places[i - 1] + 1;
    documents[i] = first ? 0 : documents[i - 1] + (follows ? 0 : 1);
  }
  return out;
}

}  // namespace ingot
