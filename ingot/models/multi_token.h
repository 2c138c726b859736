#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ingot/base/range.h"
#include "ingot/nn/transformer.h"

namespace ingot {

// Heads of a decoder that predict tokens beyond the next one.
struct MultiTokenConfig {
  int64_t depth = 0;
  std::string kind = "sequential";

  template <class V>
  void describe(V& v) {
    v("depth", depth, in(0, 64), "heads, the k-th predicting the token k + 1 ahead; 0: none");
    v("kind", kind, one_of({"sequential", "parallel"}),
      "each reads the one before it and a further token (DeepSeek V3), or all read the trunk");
  }

  friend bool operator==(const MultiTokenConfig&, const MultiTokenConfig&) = default;
};

// One such head: a transformer layer and a norm before the model's own output map.
//   sequential   h_k = layer(W [norm(e); norm(h_{k-1})]), e the embedding of the token k ahead and
//                h_0 what the model's last norm gives: DeepSeek-AI 2024, arXiv:2412.19437,
//                equations 21 to 23, with the halves in the order of the published weights
//   parallel     h_k = layer(z), z the input of the model's last layer, which is the head of the
//                next token: Gloeckle et al. 2024, arXiv:2404.19737, section 2
class MultiTokenHead : public nn::Module {
 public:
  MultiTokenHead(const MultiTokenConfig& config, const nn::TransformerOptions& layer, DType dtype,
                 Device device);

  // before: [B, T, D]; embedded: [B, T, D] of the tokens k ahead, for sequential heads → h_k.
  Tensor operator()(const Tensor& before, const Tensor& embedded, const nn::Context& context) const;
  void visit(nn::Visitor& v) override;

  std::optional<nn::Norm> embedding_norm, hidden_norm;  // sequential
  std::optional<nn::Linear> join;                       // sequential; [D, 2D]
  nn::TransformerBlock layer;
  nn::Norm norm;  // of h_k, for the output map
};

}  // namespace ingot
