// SOAP: Adam in the eigenbasis of Shampoo's statistics. Vyas et al. 2024, "SOAP: improving and
// stabilizing Shampoo using Adam", arXiv:2409.11321, Algorithms 3 and 4, as the authors' code has
// them:
//
//   the first gradient:  L = (1−β2)·g·gᵀ, R = (1−β2)·gᵀ·g, bases Q their eigenvectors; p stays
//   g' = Q_Lᵀ·g·Q_R;   m ← β1·m + (1−β1)·g';   v ← β2·v + (1−β2)·g'²
//   p ← (1 − lr·wd)·(p − lr·√(1−β2ᵗ)/(1−β1ᵗ) · Q_L·(m / (√v + ε))·Q_Rᵀ),  t without the first
//   L ← β2·L + (1−β2)·g·gᵀ, R alike; every so often Q ← the orthogonal factor of L·Q, its columns
//   first sorted by falling diagonal of Qᵀ·L·Q, and v with them; m follows into the new basis
//
// Vectors, and sides longer than max_dim, keep their own basis: Adam, but for the first gradient.
#include "ingot/optim/soap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/decompositions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

Tensor turned(const Tensor& x) { return transposed(x, 0, 1); }

// One side of a matrix: its statistics and basis.
struct Side {
  Tensor* statistics = nullptr;
  Tensor* basis = nullptr;
};
struct Sides {
  Side left, right;
};

Tensor into_basis(const Tensor& x, const Sides& sides) {
  Tensor out = x;
  if (sides.left.basis != nullptr) {
    out = matmul(turned(*sides.left.basis), out);
  }
  return dense(sides.right.basis != nullptr ? matmul(out, *sides.right.basis) : out);
}

Tensor out_of_basis(const Tensor& x, const Sides& sides) {
  Tensor out = x;
  if (sides.left.basis != nullptr) {
    out = matmul(*sides.left.basis, out);
  }
  return dense(sides.right.basis != nullptr ? matmul(out, turned(*sides.right.basis)) : out);
}

// The columns of the basis by falling variance along them.
Tensor order_of(const Side& side) {
  const Tensor& basis = *side.basis;
  const int64_t size = basis.size(0);
  if (basis.device().kind == DeviceKind::meta) {
    return empty({size}, DType::i64, basis.device());
  }
  const Tensor variance = converted(sum(basis * matmul(*side.statistics, basis), -2), DType::f64);
  const auto values = variance.values<double>();
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  return tensor_of(order, {size});
}

// A step of the power iteration; v's dimension `dim` follows the new order.
void refresh(const Side& side, Tensor& v, int64_t dim) {
  if (side.basis == nullptr) {
    return;
  }
  const Tensor order = order_of(side);
  copy_into(v, index_select(v, dim, order));
  const Tensor sorted = index_select(*side.basis, 1, order);
  copy_into(*side.basis, qr(matmul(*side.statistics, sorted)).q);
}

class Soap : public Rule {
 public:
  explicit Soap(const SoapConfig& config) : config_(config) {}

  std::string_view name() const override { return SoapConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    const DType dtype = p.full.dtype();
    std::vector<Slot> slots = {{"m", p.full.shape(), dtype}, {"v", p.full.shape(), dtype}};
    const auto add_side = [&](std::string_view side, std::string_view basis, int64_t size) {
      slots.push_back({side, {size, size}, dtype});
      slots.push_back({basis, {size, size}, dtype});
    };
    if (has_side(p.full, 0)) {
      add_side("left", "left_basis", p.full.size(0));
    }
    if (has_side(p.full, 1)) {
      add_side("right", "right_basis", p.full.size(1));
    }
    return slots;
  }

  void update(Weight& p, const Tensor& gradient, TensorList& slots,
              const Step& step) const override {
    const NoGrad quiet;
    const Tensor g = gradient * step.scale;
    const Sides sides = sides_of(p.full, slots);
    if (step.t > 1) {
      move(p, g, slots, sides, step);
    }
    take_in(sides.left, g);
    take_in(sides.right, g.rank() == 2 ? turned(g) : g);
    if (step.t == 1) {
      for (const Side& side : {sides.left, sides.right}) {
        if (side.basis != nullptr) {
          copy_into(*side.basis, symmetric_eigen(*side.statistics).vectors);
        }
      }
    } else if ((step.t - 1) % config_.every == 0) {
      const Tensor m = out_of_basis(slots[0], sides);
      refresh(sides.left, slots[1], 0);
      refresh(sides.right, slots[1], 1);
      copy_into(slots[0], into_basis(m, sides));
    }
  }

 private:
  bool has_side(const Tensor& p, int64_t dim) const {
    return p.rank() == 2 && p.size(dim) <= config_.max_dim;
  }

  Sides sides_of(const Tensor& p, TensorList& slots) const {
    Sides sides;
    size_t next = 2;
    if (has_side(p, 0)) {
      sides.left = {&slots[next], &slots[next + 1]};
      next += 2;
    }
    if (has_side(p, 1)) {
      sides.right = {&slots[next], &slots[next + 1]};
    }
    return sides;
  }

  void take_in(const Side& side, const Tensor& g) const {
    if (side.statistics != nullptr) {
      mix_into(*side.statistics, config_.beta2, matmul(g, turned(g)));
    }
  }

  // Adam's step, taken in the bases.
  void move(Weight& p, const Tensor& g, TensorList& slots, const Sides& sides,
            const Step& step) const {
    const Tensor rotated = into_basis(g, sides);
    mix_into(slots[0], config_.beta1, rotated);
    mix_into(slots[1], config_.beta2, square(rotated));
    const Tensor direction = out_of_basis(slots[0] / (sqrt(slots[1]) + config_.eps), sides);
    const auto t = static_cast<double>(step.t - 1);
    const double rate = step.learning_rate * std::sqrt(1 - std::pow(config_.beta2, t)) /
                        (1 - std::pow(config_.beta1, t));
    const double keep = 1 - step.learning_rate * config_.weight_decay * step.decay;
    move_along(p, direction, keep * rate, keep);
  }

  SoapConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const SoapConfig& config) {
  return std::make_unique<Soap>(config);
}

}  // namespace ingot
