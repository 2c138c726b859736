#pragma once

#include <memory>
#include <string>

#include "ingot/base/philox.h"
#include "ingot/generate/tokens.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot::testing {

inline DecoderConfig tiny_config(const std::string& positions = "rope") {
  DecoderConfig c;
  c.vocab = 40;
  c.width = 16;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.context = 48;
  c.positions = positions;
  return c;
}

inline std::unique_ptr<Decoder> random_model(const DecoderConfig& config, DType dtype = DType::f32,
                                             uint64_t seed = 11) {
  auto model = std::make_unique<Decoder>(config, dtype);
  nn::initialise(*model, {"normal", 0.3}, seed);
  return model;
}

inline Tokens random_tokens(size_t count, uint64_t seed) {
  const Philox random({seed, 0, 0});
  Tokens out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<int64_t>(random.word(i) % 40));
  }
  return out;
}

// The logits after the last token, all tokens read at once.
inline Tensor whole_logits(const Decoder& model, const Tokens& text) {
  const auto size = static_cast<int64_t>(text.size());
  const Tensor logits = model.logits(tensor_of(text, {1, size}));
  return reshape(slice(logits, 1, size - 1, size), {model.config().vocab});
}

}  // namespace ingot::testing
