// Against values that PyTorch 1.13 printed with nine or ten digits (data/num-torch-ops).
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/base/json.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/newton_schulz.h"
#include "ingot/optim/schedule.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/layout.h"
#include "tests/optim/given.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using nlohmann::json;

std::optional<json> torch_file(const char* name) {
  const auto folder = data_folder();
  if (!folder || !std::filesystem::exists(*folder / "num-torch-ops" / name)) {
    return std::nullopt;
  }
  return parse_json_file(*folder / "num-torch-ops" / name);
}

std::optional<RuleConfig> rule_of(const std::string& optimizer, const json& args) {
  const double decay = args.value("weight_decay", optimizer == "AdamW" ? 0.01 : 0.0);
  const auto betas = args.value("betas", std::vector<double>{0.9, 0.999});
  const double eps = args.value("eps", 1e-8);
  const bool amsgrad = args.value("amsgrad", false);
  if (optimizer == "SGD") {
    return SgdConfig{args.value("momentum", 0.0), args.value("dampening", 0.0),
                     args.value("nesterov", false), decay, false};
  }
  if (optimizer == "Adam") {
    return AdamConfig{betas[0], betas[1], eps, decay, amsgrad, false, true};
  }
  if (optimizer == "AdamW") {
    return AdamWConfig{betas[0], betas[1], eps, decay, amsgrad, true};
  }
  if (optimizer == "Adagrad") {
    return AdagradConfig{.eps = eps, .weight_decay = decay};
  }
  if (optimizer == "RMSprop") {
    return RmspropConfig{.alpha = args.value("alpha", 0.99),
                         .eps = eps,
                         .centered = args.value("centered", false),
                         .momentum = args.value("momentum", 0.0),
                         .weight_decay = decay};
  }
  if (optimizer.starts_with("Lion")) {
    return LionConfig{.beta1 = betas[0], .beta2 = betas[1], .weight_decay = decay};
  }
  if (optimizer.starts_with("Muon")) {
    return MuonConfig{
        .momentum = args.value("momentum", 0.95), .scale = "keller", .weight_decay = decay};
  }
  if (optimizer == "Adamax") {
    return AdamaxConfig{betas[0], betas[1], eps, decay};
  }
  if (optimizer == "NAdam") {
    return NadamConfig{betas[0],     betas[1], eps, args.value("momentum_decay", 4e-3),
                       "torch_1.13", decay};
  }
  if (optimizer == "RAdam") {
    return RadamConfig{betas[0], betas[1], eps, decay};
  }
  if (optimizer == "Adadelta") {
    return AdadeltaConfig{args.value("rho", 0.9), args.value("eps", 1e-6), decay};
  }
  if (optimizer == "Rprop") {  // PyTorch's first step is lr, and its bounds are no multiples of it
    const auto etas = args.value("etas", std::vector<double>{0.5, 1.2});
    const auto sizes = args.value("step_sizes", std::vector<double>{1e-6, 50});
    const double lr = args.at("lr").get<double>();
    return RpropConfig{etas[0], etas[1], sizes[0] / lr, sizes[1] / lr};
  }
  return std::nullopt;
}

TEST(TorchOptimizers, AreFollowedStepByStep) {
  const auto all = torch_file("optimizers.json");
  if (!all) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto start = all->at("p0").get<std::vector<double>>();
  const Shape shape(all->at("shape").get<std::vector<int64_t>>());
  int run = 0;
  for (const json& one : all->at("cases")) {
    const auto config = rule_of(one.at("optimizer"), one.at("args"));
    if (!config) {
      ADD_FAILURE() << one.at("optimizer") << ": no rule of this name is known to the test";
      continue;
    }
    const Tensor p = parameter(start, shape, DType::f64);
    Optimizer optimizer(dict({{"p", p}}),
                        std::visit([](const auto& rule) { return make_rule(rule); }, *config),
                        decay_all);
    size_t t = 0;
    for (const json& after : one.at("params_after_each_step")) {
      give(p, all->at("grads").at(t++).get<std::vector<double>>());
      optimizer.step(one.at("args").at("lr").get<double>());
      const Tensor expected = tensor_of(after.get<std::vector<double>>(), shape);
      // Muon's file adds 1e-7 to the norm of a buffer that is twenty times ours.
      const double limit = std::holds_alternative<MuonConfig>(*config) ? 1e-6 : 1e-7;
      EXPECT_LE(normwise_error(p, expected), limit) << one.at("optimizer") << one.at("args") << t;
    }
    ++run;
  }
  EXPECT_GE(run, 19);
}

TEST(TorchOptimizers, OrthogonaliseAlike) {
  const auto all = torch_file("optimizers.json");
  if (!all) {
    GTEST_SKIP() << no_data_folder;
  }
  const Shape shape(all->at("shape").get<std::vector<int64_t>>());
  const Tensor g = tensor_of(all->at("grads").at(0).get<std::vector<double>>(), shape);
  for (const json& one : all->at("cases")) {
    if (one.contains("newton_schulz_of_first_grad")) {
      EXPECT_LE(normwise_error(orthogonalised(g, {}, DType::f64),
                               reshaped(tensor_from(one.at("newton_schulz_of_first_grad")), shape)),
                1e-6);
    }
  }
}

TEST(TorchOptimizers, ClipTheGlobalNormAlike) {
  const auto all = torch_file("optimizers.json");
  if (!all) {
    GTEST_SKIP() << no_data_folder;
  }
  const Shape shape(all->at("shape").get<std::vector<int64_t>>());
  for (const json& one : all->at("clip_grad_norm_of_first_two_grads")) {
    const Tensor a = parameter(std::vector<double>(12), shape, DType::f64);
    const Tensor b = parameter(std::vector<double>(12), shape, DType::f64);
    give(a, all->at("grads").at(0).get<std::vector<double>>());
    give(b, all->at("grads").at(1).get<std::vector<double>>());
    const TensorDict both = dict({{"a", a}, {"b", b}});
    const double norm = gradient_norm(both);
    EXPECT_NEAR(norm, one.at("total_norm").get<double>(), 1e-7);
    scale_gradients(both, clip_factor(norm, one.at("max_norm").get<double>()));
    EXPECT_LE(normwise_error(grad(a),
                             tensor_of(one.at("clipped").at(0).get<std::vector<double>>(), shape)),
              1e-7);
    EXPECT_LE(normwise_error(grad(b),
                             tensor_of(one.at("clipped").at(1).get<std::vector<double>>(), shape)),
              1e-7);
  }
}

struct NamedSchedule {
  std::string starts_with;
  Schedule schedule;
  int64_t total;
};

TEST(TorchSchedules, AreFollowedUpdateByUpdate) {
  const auto all = torch_file("lr_schedules.json");
  if (!all) {
    GTEST_SKIP() << no_data_folder;
  }
  const std::vector<NamedSchedule> known = {
      {"StepLR(step_size=3,gamma=.5)", StepsSchedule{.gamma = 0.5, .every = 3, .milestones = {}},
       12},
      {"ExponentialLR(.9)", StepsSchedule{.gamma = 0.9, .every = 1, .milestones = {}}, 12},
      {"CosineAnnealingLR(T_max=10,eta_min=.1)", CosineSchedule{0, 0.1, 0.5, "hf"}, 10},
      {"CosineAnnealingWarmRestarts(T_0=4,T_mult=2)",
       RestartsSchedule{.first_period = 4, .period_factor = 2}, 14},
      {"OneCycleLR(max_lr=1,total_steps=12,pct_start=.3)", OneCycleSchedule{}, 12},
      {"LinearLR(start=.1,end=1,total_iters=5)",
       ConstantSchedule{.warmup = 5, .start = 0.1, .form = "hf"}, 12},
      {"PolynomialLR(total_iters=10,power=2)", LinearSchedule{.power = 2}, 10},
      {"linear warm-up 4 of 20", CosineSchedule{4, 0.1, 0.5, "hf"}, 20},
      {"WSD: warm-up 4", WsdSchedule{.warmup = 4, .decay = 6, .form = "hf"}, 20},
      {"WSD with 1-sqrt",
       WsdSchedule{.warmup = 4, .decay = 6, .decay_shape = "1-sqrt", .form = "hf"}, 20},
      {"inverse sqrt with warm-up 4", InverseSqrtSchedule{.warmup = 4, .form = "hf"}, 20}};
  size_t run = 0;
  for (const json& one : *all) {
    const auto title = one.at("schedule").get<std::string>();
    for (const auto& [start, schedule, total] : known) {
      if (title.starts_with(start)) {
        int64_t t = 0;
        for (const json& rate : one.at("lr_each_step")) {
          EXPECT_NEAR(learning_rate(schedule, 1, t, total), rate.get<double>(), 1e-9)
              << title << " at update " << t;
          ++t;
        }
        ++run;
      }
    }
  }
  EXPECT_EQ(run, all->size()) << "a schedule that no entry of `known` starts";
}

}  // namespace
}  // namespace ingot::testing
