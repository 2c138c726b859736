// Adafactor. Shazeer and Stern 2018, "Adafactor: adaptive learning rates with sublinear memory
// cost", arXiv:1804.04235, Algorithms 4 and 5. For a matrix the second moment is the outer product
// of its row means R and column means C, exact where g² has rank one:
//
//   R ← β·R + (1−β)·mean of s over columns;   C ← β·C + (1−β)·mean of s over rows;   β = 1 − t^γ
//   U = g / √(R·C / mean R);   for a vector U = g / √V
//   U ← U / max(1, RMS(U)/threshold);   p ← (1 − a·wd)·p − a·U
//
// hf (fairseq, Hugging Face): s = g² + ε1; a = ρ, or max(ε2, RMS(p))·ρ with scale_parameter; with
// beta1 the scaled update a·U is averaged. torch: s = g², the estimate is at least ε1² and mean R
// at least ε1; ρ = min(lr, 1/√t), a = max(ε2, RMS(p))·ρ, and the decay takes lr instead of a.
// Tensors of more dimensions are batches of matrices.
#include "ingot/optim/adafactor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

class Adafactor : public Rule {
 public:
  explicit Adafactor(const AdafactorConfig& config)
      : config_(config), torch_(config.form == "torch") {}

  std::string_view name() const override { return AdafactorConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    const Shape& shape = p.full.shape();
    std::vector<Slot> slots;
    if (shape.rank() >= 2) {
      Shape rows = shape;
      rows.erase(shape.rank() - 1);
      Shape columns = shape;
      columns.erase(shape.rank() - 2);
      slots = {{"row", rows, p.full.dtype()}, {"column", columns, p.full.dtype()}};
    } else {
      slots = {{"v", shape, p.full.dtype()}};
    }
    if (config_.beta1 > 0) {
      slots.push_back({"m", shape, p.full.dtype()});
    }
    return slots;
  }

  void update(Weight& p, const Tensor& gradient, TensorList& slots,
              const Step& step) const override {
    const NoGrad quiet;
    const auto t = static_cast<double>(step.t);
    const Tensor g = gradient * step.scale;
    const Tensor squares = torch_ ? square(g) : square(g) + config_.eps1;
    const Tensor u = g / root_of_second_moment(squares, slots, 1 - std::pow(t, config_.decay_rate));
    const double rate = relative_rate(step.learning_rate, t) * size_of_parameter(p.full);
    const double clipped = rate / std::max(1.0, root_mean_square(u) / config_.clip_threshold);
    const double decay = (torch_ ? step.learning_rate : rate) * config_.weight_decay * step.decay;
    if (config_.beta1 > 0) {
      mix_into(slots.back(), config_.beta1, u * clipped);
      move_along(p, slots.back(), 1, 1 - decay);
    } else {
      move_along(p, u, clipped, 1 - decay);
    }
  }

 private:
  Tensor root_of_second_moment(const Tensor& squares, TensorList& slots, double beta) const {
    if (squares.rank() < 2) {
      mix_into(slots[0], beta, squares);
      return sqrt(at_least_squared(slots[0]));
    }
    mix_into(slots[0], beta, mean(squares, -1));
    mix_into(slots[1], beta, mean(squares, -2));
    const Tensor row = reshaped_row(slots[0]);
    const Tensor column = reshaped_column(slots[1]);
    const Tensor average = mean(row, -2, Keep::yes);
    if (torch_) {
      return sqrt(at_least_squared(row * column / clamp(average, config_.eps1, largest)));
    }
    return sqrt(row / average) * sqrt(column);
  }

  // [..., M] as [..., M, 1], [..., N] as [..., 1, N]
  static Tensor reshaped_row(const Tensor& x) {
    Shape shape = x.shape();
    shape.insert(shape.rank(), 1);
    return reshaped(x, shape);
  }
  static Tensor reshaped_column(const Tensor& x) {
    Shape shape = x.shape();
    shape.insert(shape.rank() - 1, 1);
    return reshaped(x, shape);
  }

  Tensor at_least_squared(const Tensor& x) const {
    return torch_ ? clamp(x, config_.eps1 * config_.eps1, largest) : x;
  }

  double relative_rate(double learning_rate, double t) const {
    if (torch_) {
      return std::min(learning_rate, 1 / std::sqrt(t));
    }
    if (!config_.relative_step) {
      return learning_rate;
    }
    const double bound = config_.warmup_init ? 1e-6 * t : 1e-2;
    return learning_rate * std::min(bound, 1 / std::sqrt(t));
  }

  double size_of_parameter(const Tensor& p) const {
    return torch_ || config_.scale_parameter ? std::max(config_.eps2, root_mean_square(p)) : 1;
  }

  static constexpr double largest = std::numeric_limits<double>::infinity();
  AdafactorConfig config_;
  bool torch_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdafactorConfig& config) {
  check(!config.warmup_init || config.relative_step, ErrorKind::config,
        "adafactor: warmup_init needs relative_step: relative_step is false");
  check(config.form == "hf" ||
            (config.beta1 == 0 && !config.relative_step && !config.scale_parameter),
        ErrorKind::config,
        "adafactor: the form torch has neither beta1 nor relative_step nor scale_parameter: leave "
        "them at their defaults, or take the form hf");
  return std::make_unique<Adafactor>(config);
}

}  // namespace ingot
