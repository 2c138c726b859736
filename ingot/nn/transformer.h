#pragma once

#include "ingot/nn/attention.h"
#include "ingot/nn/dropout.h"
#include "ingot/nn/latent_attention.h"
#include "ingot/nn/mlp.h"
#include "ingot/nn/moe.h"

namespace ingot::nn {

// Where the norms of a layer stand.
enum class NormPosition : uint8_t {
  pre,       // x + f(norm x)
  post,      // norm(x + f x): Vaswani et al. 2017
  sandwich,  // x + norm f(norm x): Gemma 2, arXiv:2408.00118
  output,    // x + norm f(x): OLMo 2, arXiv:2501.00656
};

struct TransformerOptions {
  AttentionShape attention;
  MlpOptions mlp;
  std::optional<LatentAttentionShape> latent;  // instead of attention
  std::optional<MoeOptions> moe;               // instead of mlp
  NormKind norm = NormKind::rms;
  double norm_eps = 1e-5;
  double gain_offset = 0;  // of RMS norms: gains are stored as their difference from it
  NormPosition norm_position = NormPosition::pre;
  bool residual = true;   // without: x is replaced by f instead of added to
  bool parallel = false;  // both halves read x: GPT-J, Wang & Komatsuzaki 2021
  double dropout = 0;     // of what is added to the residual stream
};

// Attention, then a feed-forward layer or a mixture of them, each with its norm and residual.
// x: [B, T, D]
class TransformerBlock : public Block {
 public:
  TransformerBlock(const TransformerOptions& options, DType dtype, Device device);

  void visit(Visitor& v) override;

  Norm attention_norm;                              // before attention; nothing for output
  std::optional<Attention> attention;               // this
  std::optional<LatentAttention> latent_attention;  // or this
  std::optional<Norm> attention_output_norm;        // sandwich and output
  Norm mlp_norm;
  std::optional<Mlp> mlp;               // this
  std::optional<Moe> moe;               // or this
  std::optional<Norm> mlp_output_norm;  // sandwich and output
  Dropout attention_dropout;
  Dropout mlp_dropout;

 protected:
  Tensor forward(const Tensor& x, const Context& context) const override;

 private:
  // What each half adds to the stream, given its input after the norm before it.
  Tensor attended(const Tensor& x, const Context& context) const;
  Tensor transformed(const Tensor& x, const Context& context) const;

  NormPosition norm_position_;
  bool residual_;
  bool parallel_;
};

}  // namespace ingot::nn
