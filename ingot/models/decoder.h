#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ingot/models/decoder_config.h"
#include "ingot/nn/embedding.h"
#include "ingot/nn/token_cache.h"

namespace ingot {

// What a forward knows of a batch besides its ids.
struct BatchInfo {
  Tensor positions;    // [T] or [B, T] i64; undefined: 0 … T−1, after what the cache holds
  Tensor documents;    // [B, T] i32: attention stays inside equal ids; undefined: one document
  Tensor key_lengths;  // [B] i32: ids at and beyond are padding; undefined: none
};

// A causal language model: embedding, L transformer layers, a norm, an output map.
class Decoder : public nn::Module {
  DecoderConfig config_;  // complete; first, because the layers are built from it

 public:
  // Weights start at 0: initialise or load them.
  explicit Decoder(const DecoderConfig& config, DType dtype = DType::f32,
                   Device device = cpu_device);

  const DecoderConfig& config() const { return config_; }  // complete
  DType dtype() const { return embedding.weight.dtype(); }

  // ids: [B, T] i64 → [B, T, D], after the last norm: what linear_cross_entropy takes with
  // output_weight() and config().logit_softcap. Throws Error(argument) for a sequence longer than
  // the positions a model with learned ones has.
  Tensor hidden(const Tensor& ids, const BatchInfo& info = {}) const;
  // The same, with what each layer's router decided (without the weights), in order of layers.
  Tensor hidden(const Tensor& ids, const BatchInfo& info, std::vector<nn::Routed>& routed) const;
  // The same, and what each head of config().mtp makes of it: the k-th (from 1) of the token k + 1
  // ahead of each place, ready for the output map. Its places near the end, where that token or
  // those between are not in `ids`, mean nothing.
  struct Ahead {
    Tensor hidden;
    std::vector<Tensor> further;
  };
  Ahead hidden_ahead(const Tensor& ids, const BatchInfo& info,
                     std::vector<nn::Routed>& routed) const;
  // hidden() for tokens that follow those in `cache`, which then holds them too. Under NoGrad.
  Tensor hidden(const Tensor& ids, nn::TokenCache& cache, const BatchInfo& info = {}) const;
  // The logits of hidden states: [..., D] → [..., V].
  Tensor logits_of(const Tensor& hidden) const;
  Tensor logits(const Tensor& ids, const BatchInfo& info = {}) const;  // [B, T, V]
  const Tensor& output_weight() const;                                 // [V, D]

  // Whether keys cached for a text of one length are wrong in a text of the other.
  bool turns_anew(int64_t from, int64_t to) const;
  // What a cache of so many pages of so many tokens has room for.
  nn::KvCacheShape cache_shape(int64_t pages, int64_t page_tokens) const;

  // Keeps the weights of all linear maps, the output map among them, in 8 bits from here on: for
  // generating, no longer for training or saving.
  void to_int8();

  // What dropout draws from: the trainer moves it on; off until `training` is set.
  const std::shared_ptr<Randomness>& randomness() const { return randomness_; }

  // Learnt vectors that stand before the embedded tokens of every text, [P, D], or an undefined
  // tensor; empty: none. Their owner keeps them.
  std::function<Tensor()> before_text;
  int64_t lead() const;  // P

  void visit(nn::Visitor& v) override;

  nn::Embedding embedding;
  std::optional<nn::Embedding> positions;  // learned ones
  nn::Dropout dropout;
  std::vector<std::unique_ptr<nn::TransformerBlock>> layers;
  nn::Norm norm;
  std::optional<nn::Linear> head;  // untied only, or in 8 bits
  std::vector<std::unique_ptr<MultiTokenHead>> mtp;

 private:
  // `trunk`: where the input of the last layer goes.
  Tensor run(const Tensor& ids, nn::TokenCache* cache, const BatchInfo& info,
             TensorList* aside = nullptr, Tensor* trunk = nullptr) const;
  Tensor scaled(const Tensor& embedded) const;
  Tensor embedded(const Tensor& ids, const Tensor& places) const;
  nn::Context context_of(const Tensor& places, const BatchInfo& info) const;

  // The rotary tables of one forward; undefined without rope.
  struct LayerAngles {
    RopeTables usual, windowed;
    RopeTables of(const DecoderConfig& config, int64_t layer) const;
  };
  LayerAngles angles_of(const Tensor& places, int64_t length) const;

  std::shared_ptr<Randomness> randomness_ = std::make_shared<Randomness>();
};

// The document of every token, [B, T] i32, counted from 0 in each row: one starts wherever a
// position is not the one before plus 1. positions: [B, T] i64
Tensor documents_of(const Tensor& positions);

}  // namespace ingot
