// NorMuon. Li et al. 2025, "NorMuon: making Muon more efficient and scalable", arXiv:2510.05491,
// Algorithm 1, with the scale of the authors' code:
//
//   O = orthogonalised Nesterov momentum, as in muon.cpp
//   v ← β2·v + (1−β2)·mean over columns of O²;   O' = O / (√v + 1e-10), row by row
//   p ← (1 − lr·wd)·p − lr·scale·O'·‖O‖/(‖O'‖ + 1e-10)
//
// All other parameters are AdamW's, at aux_lr·lr.
#include "ingot/optim/normuon.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/direction.h"
#include "ingot/optim/newton_schulz.h"

namespace ingot {
namespace {

class Normuon : public Rule {
 public:
  explicit Normuon(const NormuonConfig& config) : config_(config) {}

  std::string_view name() const override { return NormuonConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    if (!p.matrix) {
      return moment_slots(p, false);
    }
    return {{"momentum", p.full.shape(), p.full.dtype()},
            {"v", {p.full.size(0), 1}, p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    if (!p.matrix) {
      config_.aux.update(p, g, slots, step, config_.weight_decay);
      return;
    }
    const NoGrad quiet;
    const Tensor u = momentum_direction(g, slots[0], step.scale, config_.momentum, true);
    const DType dtype = config_.ns_dtype == "bf16" ? DType::bf16 : p.full.dtype();
    const Tensor o = orthogonalised(u, {.steps = config_.ns_steps}, dtype);
    mix_into(slots[1], config_.beta2, mean(square(o), -1, Keep::yes));
    const Tensor even = o / (sqrt(slots[1]) + 1e-10);
    const double restored = frobenius_norm(o) / (frobenius_norm(even) + 1e-10);
    move_along(p, even,
               step.learning_rate * orthogonal_scale(config_.scale, p.full.shape()) * restored,
               1 - step.learning_rate * config_.weight_decay * step.decay);
  }

 private:
  NormuonConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const NormuonConfig& config) {
  return std::make_unique<Normuon>(config);
}

}  // namespace ingot
