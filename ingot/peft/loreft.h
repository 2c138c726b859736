#pragma once

#include "ingot/nn/block.h"
#include "ingot/peft/adapter.h"

namespace ingot::peft {

// Low-rank linear representation fine-tuning: what a layer gives at some places of the text is
// moved within a subspace of r dimensions,
//   h' = h + Rᵀ (W h + b − R h),   R: [r, D] with orthonormal rows, W: [r, D], b: [r]
// Wu et al. 2024, arXiv:2404.03592, equation 2. The places are the first and the last of the
// prompt, which the caller says for each batch; without any, all are. W starts at R and b at 0:
// nothing moves. R keeps its rows orthonormal by orthonormalise() after every update.
class Loreft : public nn::Module {
 public:
  Loreft(int64_t width, int64_t rank, const AdapterSeed& seed, DType dtype, Device device);

  // h: [B, T, D]   places: [B, T] of h's type, 1 where it is moved, or undefined for everywhere
  Tensor operator()(const Tensor& h, const Tensor& places = {}) const;
  void visit(nn::Visitor& v) override;

  // R becomes the nearest matrix of orthonormal rows that Gram–Schmidt finds from it.
  void orthonormalise();
  double distance_from_orthonormal() const;  // ‖R Rᵀ − I‖, Frobenius

  Tensor rotation;  // R
  Tensor weight;    // W
  Tensor bias;      // b
};

// The first `first` and the last `last` tokens of each prompt: [B, T] of 1 and 0. prompts: tokens
// of each row before its answer.
Tensor prompt_places(const std::vector<int64_t>& prompts, int64_t T, int64_t first, int64_t last,
                     DType dtype);

}  // namespace ingot::peft
