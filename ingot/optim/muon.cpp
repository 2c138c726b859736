// Muon: momentum made orthogonal. Jordan et al. 2024, "Muon: an optimizer for hidden layers in
// neural networks"; the moonshot scale: Liu et al. 2025, "Muon is scalable for LLM training",
// arXiv:2502.16982, equation 4. For the matrices between embedding and head (Group::matrix):
//
//   b ← μ·b + (1−μ)·g;   u = (1−μ)·g + μ·b  (Nesterov), or b
//   O = U·Vᵀ of the singular value decomposition of u, nearly: newton_schulz.h
//   p ← (1 − lr·wd)·p − lr·scale·O
//
// All other parameters are AdamW's, at aux_lr·lr.
#include "ingot/optim/muon.h"

#include "ingot/optim/direction.h"
#include "ingot/optim/newton_schulz.h"

namespace ingot {
namespace {

class Muon : public Rule {
 public:
  explicit Muon(const MuonConfig& config) : config_(config) {}

  std::string_view name() const override { return MuonConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    if (!p.matrix) {
      return moment_slots(p, false);
    }
    return {{"momentum", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    if (!p.matrix) {
      config_.aux.update(p, g, slots, step, config_.weight_decay);
      return;
    }
    const Tensor u =
        momentum_direction(g, slots[0], step.scale, config_.momentum, config_.nesterov);
    const DType dtype = config_.ns_dtype == "bf16" ? DType::bf16 : p.full.dtype();
    const Tensor o = orthogonalised(u, {.steps = config_.ns_steps}, dtype);
    move_along(p, o, step.learning_rate * orthogonal_scale(config_.scale, p.full.shape()),
               1 - step.learning_rate * config_.weight_decay * step.decay);
  }

 private:
  MuonConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const MuonConfig& config) {
  return std::make_unique<Muon>(config);
}

}  // namespace ingot
