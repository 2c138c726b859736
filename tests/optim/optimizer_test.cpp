#include "ingot/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ingot/base/config_toml.h"
#include "ingot/device/allocator.h"
#include "ingot/optim/table.h"
#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const TensorDict& entries) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : entries) {
    names.push_back(name);
  }
  return names;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.bytes())) == 0;
}

TensorDict copied(const TensorDict& entries) {
  return entries.mapped([](const std::string&, const Tensor& x) { return copy_of(x); });
}

OptimizerConfig with_rule(const RuleConfig& rule) {
  OptimizerConfig config;
  config.rule = rule;
  return config;
}

// A matrix and a vector of `dtype` under a rule, driven by gradients that depend on the step.
struct Training {
  Training(const OptimizerConfig& config, DType dtype)
      : matrix(parameter({1.5, -0.3, 0.11, 2, 0.7, -1}, {2, 3}, dtype)),
        vector(parameter({0.1, 0.2, 0.3}, {3}, dtype)),
        optimizer(make_optimizer(config, dict({{"matrix", matrix}, {"vector", vector}}))) {}
  Training(const RuleConfig& config, DType dtype) : Training(with_rule(config), dtype) {}

  void steps(int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const auto at = static_cast<double>(t);
      if (optimizer.curvature_due()) {
        optimizer.observe_curvature(
            optimizer.parameters().mapped([&](const std::string&, const Tensor& p) {
              return full(p.shape(), 0.1 * at, p.dtype());
            }));
      }
      give(matrix, {std::sin(at), 0.3, -at, 1e-3, std::cos(3 * at), 0});
      give(vector, {0.1 * at, -1, std::sin(2 * at)});
      optimizer.step(0.01 + 1e-4 * at, 0.5);
    }
  }

  Tensor matrix;
  Tensor vector;
  Optimizer optimizer;
};

OptimizerConfig configured(const std::string& kind, const std::string& settings) {
  OptimizerConfig config;
  choose(config, kind);
  apply_settings(fields_of(config), toml_settings(settings, kind));
  return config;
}

// Every rule of the table, and what else decides which state there is.
std::vector<std::pair<std::string, OptimizerConfig>> all_rules() {
  std::vector<std::pair<std::string, OptimizerConfig>> all;
  for (const std::string& kind : rule_names()) {
    all.emplace_back(kind, configured(kind, ""));
  }
  for (const auto& [kind, settings] : std::vector<std::pair<std::string, std::string>>{
           {"adamw", "amsgrad = true"},
           {"sgd", "momentum = 0.9"},
           {"rmsprop", "centered = true\nmomentum = 0.9"},
           {"adafactor", "beta1 = 0.9\nscale_parameter = true"},
           {"adafactor", "form = 'torch'"},
           {"muon", "ns_dtype = 'bf16'\nnesterov = false"},
           {"shampoo", "every = 3\nbeta1 = 0\nbeta2 = 1\ngraft = 'none'"},
           {"soap", "every = 3\nmax_dim = 2"},
           {"schedule_free_adamw", "inner_momentum = 0.9"},
           {"adamw_8bit", "min_elements = 0\nblock = 4"},
           {"ademamix", "alpha_warmup = 10\nbeta3_warmup = 10"},
           {"sgd", "momentum = 0.9\nlookahead.every = 3\nlookahead.momentum = 'pullback'"},
           {"adamw", "ema.decay = 0.9\nema.form = 'debiased'"},
           {"lion", "ema.decay = 0.9\nlookahead.every = 2\nlookahead.momentum = 'reset'"}}) {
    all.emplace_back(concat(kind, " with ", settings), configured(kind, settings));
  }
  return all;
}

TEST(Optimizer, ResumedFromItsStateContinuesBitForBit) {
  for (const auto& [title, rule] : all_rules()) {
    SCOPED_TRACE(title);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      Training straight(rule, dtype);
      straight.steps(0, 7);
      const TensorDict state = copied(straight.optimizer.state());
      Training resumed(rule, dtype);
      copy_into(resumed.matrix, straight.matrix);
      copy_into(resumed.vector, straight.vector);
      resumed.optimizer.load(state);
      straight.steps(7, 15);
      resumed.steps(7, 15);
      EXPECT_TRUE(same_bytes(straight.matrix, resumed.matrix)) << name(dtype);
      EXPECT_TRUE(same_bytes(straight.vector, resumed.vector)) << name(dtype);
      const TensorDict last = straight.optimizer.state();
      for (const auto& [key, value] : resumed.optimizer.state()) {
        EXPECT_TRUE(same_bytes(value, last.at(key))) << key;
      }
    }
  }
}

TEST(Optimizer, ShowsWhatIsToBeEvaluatedAndGivesTheTrainedBitsBack) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Training run(configured("sgd", "ema.decay = 0.5"), dtype);
    const Tensor first = converted(run.optimizer.masters().at("vector"), DType::f64);
    run.steps(0, 1);
    const Tensor trained = copy_of(run.vector);
    {
      const EvaluatedWeights shown(run.optimizer);
      for (size_t i = 0; i < 3; ++i) {  // half of the start, half of the first update's weights
        EXPECT_NEAR(numbers(run.vector)[i], (numbers(first)[i] + numbers(trained)[i]) / 2, 2e-3);
      }
      EXPECT_THAT(message_of(ErrorKind::internal, [&] { run.optimizer.step(1); }),
                  HasSubstr("while other weights are shown"));
    }
    EXPECT_TRUE(same_bytes(run.vector, trained)) << name(dtype);
  }
}

TEST(Optimizer, RefusesAveragesOfAverages) {
  EXPECT_EQ(message_of(ErrorKind::config,
                       [] { make_rule(configured("schedule_free_adamw", "ema.decay = 0.9")); }),
            "optim: schedule_free_adamw keeps averages of its own: ema.decay is 0.9, "
            "lookahead.every is 0; set both to 0");
}

TEST(Optimizer, NamesItsStateByRuleSlotAndParameter) {
  Training run(AdamWConfig{}, DType::bf16);
  EXPECT_THAT(names_of(run.optimizer.state()),
              ElementsAre("adamw.m/matrix", "adamw.v/matrix", "adamw.t/matrix", "master/matrix",
                          "adamw.m/vector", "adamw.v/vector", "adamw.t/vector", "master/vector"));
  EXPECT_THAT(
      names_of(Training(SgdConfig{.momentum = 0.5}, DType::f32).optimizer.state()),
      ElementsAre("sgd.momentum/matrix", "sgd.t/matrix", "sgd.momentum/vector", "sgd.t/vector"));
}

TEST(Optimizer, DoesNotLoseTinyUpdatesOfABf16Parameter) {
  const Tensor p = parameter({1}, {1}, DType::bf16);
  Optimizer optimizer(dict({{"p", p}}), make_rule(SgdConfig{}));
  for (int t = 0; t < 1000; ++t) {
    give(p, -1);
    optimizer.step(1e-4);  // bf16 near 1 moves in steps of 2⁻⁷: one update alone would vanish
  }
  // A thousand roundings of f32 near 1 add up to at most 6e-5; measured 1.7e-5.
  EXPECT_NEAR(numbers(optimizer.masters().at("p"))[0], 1.1, 6e-5);
  EXPECT_NEAR(numbers(p)[0], 1.1, 1.0 / 256);
}

TEST(Optimizer, WritesTheRoundedMasterIntoTheParameterInEveryStep) {
  for (const auto& [title, rule] : all_rules()) {
    SCOPED_TRACE(title);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      Training run(rule, dtype);
      for (int64_t t = 0; t < 5; ++t) {
        run.steps(t, t + 1);
        EXPECT_TRUE(same_bytes(run.matrix, converted(run.optimizer.masters().at("matrix"), dtype)));
        EXPECT_TRUE(same_bytes(run.vector, converted(run.optimizer.masters().at("vector"), dtype)));
      }
    }
  }
}

// A rule that knows nothing of half precision: p ← p − g.
class Subtract : public Rule {
 public:
  std::string_view name() const override { return "subtract"; }
  std::vector<Slot> slots(const Weight&) const override { return {}; }
  void update(Weight& p, const Tensor& g, TensorList&, const Step&) const override {
    auto values = p.full.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= g.values<float>()[i];
    }
  }
};

TEST(Optimizer, RoundsForARuleThatDoesNot) {
  const Tensor p = parameter({1, 2}, {2}, DType::bf16);
  Optimizer optimizer(dict({{"p", p}}), std::make_unique<Subtract>());
  give(p, {0.25, 1.0 / 1024});
  optimizer.step(1);
  EXPECT_THAT(numbers(p), ElementsAre(0.75, 2));
  EXPECT_THAT(numbers(optimizer.masters().at("p")), ElementsAre(0.75, 2 - 1.0 / 1024));
}

TEST(Optimizer, StartsFromGivenMasters) {
  const Tensor p = parameter({0}, {1}, DType::bf16);
  Optimizer optimizer(dict({{"p", p}}), make_rule(AdamWConfig{}));
  optimizer.set_master("p", tensor_of(std::vector<float>{0.123456F}, {1}));
  EXPECT_EQ(optimizer.state().at("master/p").values<float>()[0], 0.123456F);
  EXPECT_EQ(numbers(p)[0], static_cast<double>(BF16(0.123456F)));
  EXPECT_THAT(
      message_of(ErrorKind::argument, [&] { optimizer.set_master("q", zeros({1}, DType::f32)); }),
      HasSubstr("no 'q'"));
  EXPECT_EQ(
      message_of(ErrorKind::shape, [&] { optimizer.set_master("p", zeros({2}, DType::f32)); }),
      "optimizer state: 'master/p' has another shape: saved [2], needed [1]; the state is of "
      "another model");
}

TEST(Optimizer, ScalesGradientsAndReleasesThem) {
  const Tensor a = parameter({1, 1}, {2}, DType::f32);
  const Tensor b = parameter({1, 1}, {2}, DType::f32);
  Optimizer scaled(dict({{"p", a}}), make_rule(SgdConfig{}));
  Optimizer plain(dict({{"p", b}}), make_rule(SgdConfig{}));
  give(a, {8, -4});
  give(b, {2, -1});
  scaled.step(0.5, 0.25);
  plain.step(0.5);
  EXPECT_TRUE(same_bytes(a, b));
  EXPECT_FALSE(grad(a).defined());
  give(a, 1);
  scaled.clear();
  EXPECT_FALSE(grad(a).defined());
}

TEST(Optimizer, LeavesAParameterWithoutGradientAlone) {
  Training run(AdamWConfig{}, DType::f32);
  const Tensor before = copy_of(run.matrix);
  give(run.vector, 1);
  run.optimizer.step(0.1);
  EXPECT_TRUE(same_bytes(run.matrix, before));
  EXPECT_EQ(run.optimizer.state().at("adamw.t/matrix").values<int64_t>()[0], 0);
  EXPECT_EQ(run.optimizer.state().at("adamw.t/vector").values<int64_t>()[0], 1);
}

TEST(Optimizer, SpoilsWhatAnEarlierForwardHasSaved) {
  const Tensor p = parameter({1, 1}, {2}, DType::f32);
  Optimizer optimizer(dict({{"p", p}}), make_rule(SgdConfig{}));
  const Saved kept = saved(p);
  give(p, 1);
  optimizer.step(0.1);
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { kept(); }), HasSubstr("written in place"));
}

TEST(Optimizer, AllocatesOnMetaWhatItAllocatesOnCpu) {
  std::vector<int64_t> bytes;
  for (const Device device : {cpu_device, Device{DeviceKind::meta}}) {
    const auto live = [&] {
      return allocator(device).stats().live[static_cast<size_t>(Purpose::optimizer)];
    };
    const int64_t before = live();
    Tensor p = zeros({100, 7}, DType::bf16, device);
    require_grad(p);
    Optimizer optimizer(dict({{"p", p}}), make_rule(AdamWConfig{}));
    give(p, 0.5);
    optimizer.step(0.1);
    EXPECT_EQ(optimizer.state_bytes_per_parameter(), 12);
    optimizer.load(optimizer.state());
    bytes.push_back(live() - before);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_GE(bytes[0], 3 * 700 * 4);
}

TEST(Optimizer, RefusesStateThatIsNotItsOwnAndChangesNothing) {
  Training run(AdamWConfig{}, DType::f32);
  run.steps(0, 3);
  const TensorDict good = copied(run.optimizer.state());
  const auto load_error = [&](ErrorKind kind, const TensorDict& state) {
    return message_of(kind, [&] { run.optimizer.load(state); });
  };
  EXPECT_THAT(load_error(ErrorKind::argument, good.select("adamw.m/*")),
              HasSubstr("optimizer state: 'adamw.v/matrix' is missing: the nearest of 2 saved "
                        "names is 'adamw.m/matrix'"));
  TensorDict more = good;
  more.add("master/matrix", zeros({2, 3}, DType::f32));
  EXPECT_THAT(load_error(ErrorKind::argument, more),
              HasSubstr("'master/matrix' is saved, but this optimizer has no such tensor"));
  const TensorDict resized = good.mapped([](const std::string& name, const Tensor& x) {
    return name == "adamw.v/vector" ? zeros({4}, DType::f32) : zeros(x.shape(), x.dtype());
  });
  EXPECT_THAT(load_error(ErrorKind::shape, resized),
              HasSubstr("'adamw.v/vector' has another shape: saved [4], needed [3]"));
  const TensorDict wider = good.mapped([](const std::string& name, const Tensor& x) {
    return name == "adamw.v/vector" ? zeros({3}, DType::f64) : zeros(x.shape(), x.dtype());
  });
  EXPECT_THAT(load_error(ErrorKind::dtype, wider),
              HasSubstr("'adamw.v/vector' has another type: saved f64, needed f32"));
  for (const auto& [key, value] : run.optimizer.state()) {
    EXPECT_TRUE(same_bytes(value, good.at(key))) << key;
  }
}

TEST(Optimizer, RefusesParametersItCannotTrainAndNumbersThatAreNotFinite) {
  const Tensor frozen = zeros({2}, DType::f32);
  EXPECT_EQ(message_of(ErrorKind::argument,
                       [&] {
                         Optimizer(dict({{"p", frozen}}), make_rule(SgdConfig{}));
                       }),
            "optimizer: 'p' collects no gradient; call require_grad on it, or leave it out");
  EXPECT_THAT(message_of(ErrorKind::dtype,
                         [] {
                           Optimizer(dict({{"p", zeros({2}, DType::i64)}}), make_rule(SgdConfig{}));
                         }),
              HasSubstr("'p' is not a floating-point tensor"));
  Training run(SgdConfig{}, DType::f32);
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { run.optimizer.step(-1); }),
              HasSubstr("the learning rate must be finite and at least 0: got -1"));
  EXPECT_THAT(message_of(ErrorKind::numeric, [&] { run.optimizer.step(1, NAN); }),
              HasSubstr("the factor of the gradients is not finite"));
}

}  // namespace
}  // namespace ingot::testing
