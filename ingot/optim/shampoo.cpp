// Shampoo. Gupta, Koren, Singer 2018, "Shampoo: preconditioned stochastic tensor optimization",
// arXiv:1802.09568, Algorithms 1 and 2; averages, bias correction and grafting: Shi et al. 2023,
// "A distributed data-parallel PyTorch implementation of the distributed Shampoo optimizer",
// arXiv:2309.06497, Algorithm 2.
//
//   L ← β2·L + (1−β2)·g·gᵀ;   R ← β2·R + (1−β2)·gᵀ·g;   both divided by 1−β2ᵗ
//   P = (L + ε·I)^(−1/4) · m̂ · (R + ε·I)^(−1/4)
//   p ← (1 − lr·wd)·p − lr·P·‖A‖/‖P‖,   A Adam's step
//
// With β2 = 1: L ← L + g·gᵀ from L = ε·I, as first published. With one preconditioned side, as of a
// vector or where the other is longer than max_dim, the exponent is −1/2; with none, P = m̂.
#include "ingot/optim/shampoo.h"

#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/decompositions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// A tensor as a matrix: rows × everything else; a vector is a column.
Tensor as_matrix(const Tensor& x) {
  const int64_t rows = x.rank() == 0 ? 1 : x.size(0);
  return reshaped(x, {rows, rows == 0 ? 0 : x.elements() / rows});
}

class Shampoo : public Rule {
 public:
  explicit Shampoo(const ShampooConfig& config) : config_(config) {}

  std::string_view name() const override { return ShampooConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    const Tensor w = as_matrix(p.full);
    const DType dtype = p.full.dtype();
    std::vector<Slot> slots;
    const auto add_side = [&](std::string_view side, std::string_view root, int64_t size) {
      slots.push_back({side, {size, size}, dtype});
      slots.push_back({root, {size, size}, dtype});
    };
    if (w.size(0) <= config_.max_dim) {
      add_side("left", "left_root", w.size(0));
    }
    if (p.full.rank() >= 2 && w.size(1) <= config_.max_dim) {
      add_side("right", "right_root", w.size(1));
    }
    if (config_.beta1 > 0) {
      slots.push_back({"m", p.full.shape(), dtype});
    }
    if (config_.graft == "adam") {
      slots.push_back({"v", p.full.shape(), dtype});
    }
    return slots;
  }

  void update(Weight& p, const Tensor& gradient, TensorList& slots,
              const Step& step) const override {
    const NoGrad quiet;
    const Tensor flat = gradient * step.scale;
    const Tensor g = as_matrix(flat);
    size_t next = 0;
    const bool left = g.size(0) <= config_.max_dim;
    const bool right = p.full.rank() >= 2 && g.size(1) <= config_.max_dim;
    const double exponent = left && right ? -0.25 : -0.5;
    Tensor direction = as_matrix(averaged(flat, slots, left, right, step.t));
    const Tensor mean = direction;
    if (left) {
      direction = matmul(root_of(slots, next, g, step.t, exponent), direction);
      next += 2;
    }
    if (right) {
      const Tensor turned = transposed(g, 0, 1);
      direction = matmul(direction, root_of(slots, next, turned, step.t, exponent));
      next += 2;
    }
    const double length = grafted_length(flat, mean, slots, direction, step.t);
    move_along(p, reshaped(dense(direction), p.full.shape()), step.learning_rate * length,
               1 - step.learning_rate * config_.weight_decay * step.decay);
  }

 private:
  // m̂, or g without an average.
  Tensor averaged(const Tensor& g, TensorList& slots, bool left, bool right, int64_t t) const {
    if (config_.beta1 == 0) {
      return g;
    }
    Tensor& m = slots[2 * (static_cast<size_t>(left) + static_cast<size_t>(right))];
    mix_into(m, config_.beta1, g);
    return m / (1 - std::pow(config_.beta1, static_cast<double>(t)));
  }

  // Takes the gradient into the statistics slots[at] and returns their root slots[at + 1], renewed
  // when it is due.
  Tensor root_of(TensorList& slots, size_t at, const Tensor& g, int64_t t, double exponent) const {
    Tensor& statistics = slots[at];
    const Tensor product = matmul(g, transposed(g, 0, 1));
    const bool sums = config_.beta2 == 1;
    if (sums) {
      if (t == 1) {
        copy_into(statistics, identity(g.size(0), g.dtype(), g.device()) * config_.epsilon);
      }
      add_into(statistics, product);
    } else {
      mix_into(statistics, config_.beta2, product);
    }
    if ((t - 1) % config_.every == 0) {
      const double weight = sums ? 1 : 1 - std::pow(config_.beta2, static_cast<double>(t));
      const Tensor root =
          symmetric_power(statistics * (1 / weight), sums ? 0 : config_.epsilon, exponent);
      copy_into(slots[at + 1], root);
    }
    return slots[at + 1];
  }

  static Tensor identity(int64_t size, DType dtype, Device device) {
    Tensor out = zeros({size, size}, dtype, device);
    Tensor diagonal = out.aliased({size}, {size + 1}, out.offset());
    fill(diagonal, 1);
    return out;
  }

  // ‖A‖/‖P‖ for Adam's step A along the mean gradient; 1 without grafting.
  double grafted_length(const Tensor& g, const Tensor& mean, TensorList& slots,
                        const Tensor& direction, int64_t t) const {
    if (config_.graft != "adam") {
      return 1;
    }
    mix_into(slots.back(), config_.grafting_beta2, square(g));
    const double weight = 1 - std::pow(config_.grafting_beta2, static_cast<double>(t));
    const Tensor root = sqrt(slots.back() * (1 / weight)) + config_.grafting_eps;
    const double adam = frobenius_norm(mean / as_matrix(root));
    return adam / (frobenius_norm(dense(direction)) + 1e-16);
  }

  ShampooConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const ShampooConfig& config) {
  return std::make_unique<Shampoo>(config);
}

}  // namespace ingot
