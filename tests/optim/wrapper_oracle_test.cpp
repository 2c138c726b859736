// What surrounds a rule, beside the reference: averages of weights, lookahead, sharpness-aware
// gradients, and the iteration that makes a matrix orthogonal.
#include <gtest/gtest.h>

#include "ingot/ops/decompositions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/loss_scale.h"
#include "ingot/optim/newton_schulz.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/layout.h"
#include "tests/optim/given.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

Tensor at(const Tensor& all, int64_t t, const Shape& shape) {
  return reshaped(sliced(all, 0, t, t + 1), shape);
}

// A [T, …] tensor filled step by step.
struct Path {
  Path(int64_t steps, const Tensor& like) : shape(like.shape()) {
    Shape whole = shape;
    whole.insert(0, steps);
    values = empty(whole, like.dtype());
  }
  void set(int64_t t, const Tensor& x) {
    Tensor target = at(values, t, shape);
    copy_into(target, x);
  }
  Shape shape;
  Tensor values;
};

// Runs `check` in both types over the fixtures whose method starts with one of the prefixes.
void for_each(const std::vector<std::string>& prefixes,
              const std::function<void(const Oracle&, DType)>& check) {
  int run = 0;
  for (const auto& path : oracle_files("methods/optim")) {
    const Oracle oracle = read_oracle(path);
    for (const std::string& prefix : prefixes) {
      if (oracle.method.starts_with(prefix)) {
        SCOPED_TRACE(oracle.file);
        check(oracle, DType::f64);
        check(oracle, DType::f32);
        ++run;
        break;
      }
    }
  }
  EXPECT_GT(run, 0) << "no fixtures in " << oracle_folder();
}

// A rule whose weights go wherever the test wants: p ← g.
class Placed : public Rule {
 public:
  std::string_view name() const override { return "placed"; }
  std::vector<Slot> slots(const Weight&) const override { return {}; }
  void update(Weight& p, const Tensor& g, TensorList&, const Step&) const override {
    copy_into(p.full, g);
  }
};

TEST(EmaOracles, AveragesFollowTheReference) {
  for_each({"ema_"}, [](const Oracle& oracle, DType dtype) {
    const Tensor weights = oracle.input("weights", dtype);
    Shape shape = weights.shape();
    shape.erase(0);
    const Tensor p = copy_of(at(weights, 0, shape));
    Tensor leaf = p;
    EmaConfig config{oracle.setting("decay"), oracle.word("mode"), oracle.setting("inv_gamma"),
                     oracle.setting("power")};
    Optimizer optimizer(dict({{"p", require_grad(leaf)}}),
                        with_ema(std::make_unique<Placed>(), config));
    Path path(weights.size(0) - 1, p);
    for (int64_t t = 0; t + 1 < weights.size(0); ++t) {
      grad(leaf) = copy_of(at(weights, t + 1, shape));
      optimizer.step(1);
      const EvaluatedWeights shown(optimizer);
      path.set(t, leaf);
    }
    expect_entry(oracle, "ema", path.values);
  });
}

TEST(LookaheadOracles, TrajectoriesFollowTheReference) {
  for_each({"lookahead_"}, [](const Oracle& oracle, DType dtype) {
    Tensor w = oracle.input("W", dtype);
    Tensor b = oracle.input("b", dtype);
    const LookaheadConfig config{static_cast<int64_t>(oracle.setting("k")), oracle.setting("alpha"),
                                 oracle.word("pullback_momentum")};
    Optimizer optimizer(
        dict({{"W", require_grad(w)}, {"b", require_grad(b)}}),
        with_lookahead(make_rule(SgdConfig{.momentum = oracle.setting("momentum")}), config));
    const Tensor for_w = oracle.input("grads_W", dtype);
    const Tensor for_b = oracle.input("grads_b", dtype);
    Path path_w(for_w.size(0), w);
    Path path_b(for_w.size(0), b);
    for (int64_t t = 0; t < for_w.size(0); ++t) {
      grad(w) = copy_of(at(for_w, t, w.shape()));
      grad(b) = copy_of(at(for_b, t, b.shape()));
      optimizer.step(oracle.setting("lr"));
      path_w.set(t, w);
      path_b.set(t, b);
    }
    expect_entry(oracle, "W", path_w.values);
    expect_entry(oracle, "b", path_b.values);
    expect_entry(oracle, "final_momentum_buffer_W", optimizer.state().at("sgd.momentum/W"));
    expect_entry(oracle, "final_momentum_buffer_b", optimizer.state().at("sgd.momentum/b"));
  });
}

// loss = Σ a·w²/2 + q·w⁴/4 + c·w of one parameter, with its gradient left in it.
double quartic(const Oracle& oracle, const std::string& name, const Tensor& w) {
  const NoGrad quiet;
  const Tensor a = oracle.input("quadratic_" + name, w.dtype());
  const Tensor q = oracle.input("quartic_" + name, w.dtype());
  const Tensor c = oracle.input("linear_" + name, w.dtype());
  grad(w) = copy_of(a * w + q * w * w * w + c);
  return sum(a * w * w * 0.5 + q * w * w * w * w * 0.25 + c * w).item();
}

TEST(SamOracles, TrajectoriesFollowTheReference) {
  for_each({"sam", "asam"}, [](const Oracle& oracle, DType dtype) {
    Tensor w = oracle.input("W", dtype);
    Tensor b = oracle.input("b", dtype);
    Optimizer optimizer(dict({{"W", require_grad(w)}, {"b", require_grad(b)}}),
                        make_rule(SgdConfig{.momentum = oracle.setting("momentum")}));
    const auto steps = static_cast<int64_t>(oracle.setting("steps"));
    const SamConfig config{oracle.setting("rho"), oracle.hyper.at("adaptive").get<bool>()};
    Path path_w(steps, w);
    Path path_b(steps, b);
    std::vector<double> losses;
    for (int64_t t = 0; t < steps; ++t) {
      losses.push_back(quartic(oracle, "W", w) + quartic(oracle, "b", b));
      const Tensor before = copy_of(w);
      {
        const SharpnessAscent up(optimizer, config);
        EXPECT_FALSE(grad(w).defined());
        EXPECT_GT(quartic(oracle, "W", w) + quartic(oracle, "b", b), losses.back());
      }
      EXPECT_EQ(numbers(before), numbers(w));  // the same bits again
      optimizer.step(oracle.setting("lr"));
      path_w.set(t, w);
      path_b.set(t, b);
    }
    expect_entry(oracle, "W", path_w.values);
    expect_entry(oracle, "b", path_b.values);
    expect_entry(oracle, "loss_before_step", tensor_of(losses, {steps}), dtype);
  });
}

TEST(LossScaleOracles, ScalesAndSkippedStepsFollowTheReference) {
  for_each({"dynamic_loss_scale"}, [](const Oracle& oracle, DType) {
    LossScale scale{oracle.setting("initial_scale"), oracle.setting("growth"),
                    oracle.setting("backoff"),
                    static_cast<int64_t>(oracle.setting("growth_interval"))};
    std::vector<double> scales;
    std::vector<int64_t> counters;
    std::vector<int64_t> applied;
    for (const auto& overflow : oracle.inputs.at("overflow")) {
      applied.push_back(scale.after_step(number_from(overflow) != 0) ? 1 : 0);
      scales.push_back(scale.scale);
      counters.push_back(scale.counter);
    }
    const auto steps = static_cast<int64_t>(scales.size());
    expect_entry(oracle, "scale", tensor_of(scales, {steps}));
    expect_entry(oracle, "counter", tensor_of(counters, {steps}));
    expect_entry(oracle, "applied", tensor_of(applied, {steps}));
  });
}

TEST(NewtonSchulzOracles, OutputsFollowTheReference) {
  for_each({"newton_schulz"}, [](const Oracle& oracle, DType dtype) {
    const NewtonSchulz numbers{static_cast<int64_t>(oracle.setting("steps")), oracle.setting("eps"),
                               oracle.setting("a"), oracle.setting("b"), oracle.setting("c")};
    const Tensor o = orthogonalised(oracle.input("G", dtype), numbers, dtype);
    expect_entry(oracle, "output", o);
    // Singular values, largest first: √ of the eigenvalues of the smaller Gram matrix.
    const bool tall = o.size(0) > o.size(1);
    const Tensor turned = dense(transposed(o, 0, 1));
    const Tensor gram = converted(tall ? matmul(turned, o) : matmul(o, turned), DType::f64);
    const Tensor q = symmetric_eigen(gram).vectors;
    const Tensor values = sqrt(sum(q * matmul(gram, q), 0));
    expect_entry(oracle, "singular_values", values, dtype);
  });
}

}  // namespace
}  // namespace ingot::testing
