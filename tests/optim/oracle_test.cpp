#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <set>

#include "ingot/optim/clip.h"
#include "ingot/optim/schedule.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/layout.h"
#include "tests/optim/given.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using nlohmann::json;

bool knows(const json& hyper, const std::set<std::string>& keys) {
  return std::all_of(hyper.items().begin(), hyper.items().end(),
                     [&](const auto& item) { return keys.contains(item.key()); });
}

// The rule that a fixture describes, as method name and settings; nothing when it is not built yet.
std::optional<RuleConfig> rule_of(const std::string& method, const json& hyper) {
  const auto number = [&](const char* key, double otherwise) {
    return hyper.contains(key) ? number_from(hyper.at(key)) : otherwise;
  };
  if (method.starts_with("sgd") &&
      knows(hyper, {"lr", "momentum", "dampening", "nesterov", "weight_decay"})) {
    return SgdConfig{number("momentum", 0), number("dampening", 0), number("nesterov", 0) != 0,
                     number("weight_decay", 0), false};
  }
  if (method.starts_with("adam") && !method.starts_with("adamax") &&
      !method.starts_with("adamix") &&
      knows(hyper, {"lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "decoupled"})) {
    const bool amsgrad = number("amsgrad", 0) != 0;
    if (number("decoupled", 0) != 0) {
      return AdamWConfig{number("beta1", 0.9),
                         number("beta2", 0.999),
                         number("eps", 1e-8),
                         number("weight_decay", 0),
                         amsgrad,
                         true};
    }
    return AdamConfig{number("beta1", 0.9),
                      number("beta2", 0.999),
                      number("eps", 1e-8),
                      number("weight_decay", 0),
                      amsgrad,
                      method.find("eps_hat") != std::string::npos,
                      true};
  }
  return std::nullopt;
}

std::unique_ptr<const Rule> built(const RuleConfig& config) {
  return std::visit([](const auto& rule) { return make_rule(rule); }, config);
}

// The slot that a fixture calls final_<its name>_<parameter>.
std::string state_name(const std::string& rule, const std::string& slot, const std::string& p) {
  const std::string own = slot == "exp_avg" ? "m" : (slot == "exp_avg_sq" ? "v" : "momentum");
  return rule + "." + own + "/" + p;
}

void run_optimizer(const Oracle& oracle, const RuleConfig& config, DType dtype) {
  TensorDict parameters;
  for (const char* name : {"W", "b"}) {
    Tensor p = oracle.input(name, dtype);
    parameters.add(name, require_grad(p));
  }
  Optimizer optimizer(parameters, built(config), decay_all);
  const Tensor first = oracle.input("grads_W", dtype);
  TensorDict paths;
  for (const auto& [name, p] : parameters) {
    Shape shape = p.shape();
    shape.insert(0, first.size(0));
    paths.add(name, empty(shape, dtype));
  }
  for (int64_t t = 0; t < first.size(0); ++t) {
    for (const auto& [name, p] : parameters) {
      const Tensor all = oracle.input("grads_" + name, dtype);
      grad(p) = reshaped(copy_of(sliced(all, 0, t, t + 1)), p.shape());
    }
    optimizer.step(oracle.setting("lr"));
    for (const auto& [name, p] : parameters) {
      Tensor at = reshaped(sliced(paths.at(name), 0, t, t + 1), p.shape());
      copy_into(at, p);
    }
  }
  const TensorDict state = optimizer.state();
  for (const auto& [name, path] : paths) {
    expect_entry(oracle, name, path);
    for (const char* slot : {"exp_avg", "exp_avg_sq", "momentum_buffer"}) {
      const std::string entry = std::string("final_") + slot + "_" + name;
      if (oracle.expected.contains(entry)) {
        expect_entry(oracle, entry,
                     state.at(state_name(std::string(optimizer.rule()), slot, name)));
      }
    }
  }
}

void run_clip(const Oracle& oracle, DType dtype) {
  TensorDict parameters;
  for (const char* name : {"W", "b"}) {
    const Tensor g = oracle.input(name, dtype);
    Tensor p = zeros(g.shape(), dtype);
    parameters.add(name, require_grad(p));
    grad(p) = copy_of(g);
  }
  const std::string mode = oracle.word("mode");
  const NormKind kind = oracle.word("norm_type") == "inf" ? NormKind::largest : NormKind::l2;
  const double norm = gradient_norm(parameters, kind);
  const double limit = oracle.setting("max_norm");
  if (mode == "value") {
    clip_by_value(parameters, limit);
  } else {
    const ClipForm form = mode == "torch" ? ClipForm::torch : ClipForm::exact;
    scale_gradients(parameters, clip_factor(norm, limit, form));
  }
  expect_entry(oracle, "total_norm", scalar(norm, DType::f64), dtype);
  for (const auto& [name, p] : parameters) {
    expect_entry(oracle, name, grad(p));
  }
}

bool is_clip(const Oracle& oracle) {
  return oracle.method.starts_with("clip_") &&
         knows(oracle.hyper, {"mode", "norm_type", "max_norm"});
}

TEST(OptimizerOracles, TrajectoriesStatesAndClippedGradientsFollowTheReference) {
  const auto files = oracle_files("methods/optim");
  ASSERT_FALSE(files.empty()) << "no fixtures in " << oracle_folder();
  int run = 0;
  std::string missing;
  for (const auto& path : files) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.file);
    const auto config = rule_of(oracle.method, oracle.hyper);
    if (!config && !is_clip(oracle)) {
      missing.append(" ").append(oracle.method);
      continue;
    }
    for (const DType dtype : {DType::f64, DType::f32}) {
      config ? run_optimizer(oracle, *config, dtype) : run_clip(oracle, dtype);
    }
    ++run;
  }
  EXPECT_GE(run, 15);
  if (!missing.empty()) {
    std::cout << "not implemented yet:" << missing << "\n";
  }
}

// A schedule fixture's form is the ending of its method name.
std::optional<Schedule> schedule_of(const Oracle& oracle) {
  const auto whole = [&](const char* key) { return static_cast<int64_t>(oracle.setting(key, 0)); };
  const auto named = [&](std::string_view text) {
    return oracle.method.find(text) != std::string::npos;
  };
  const int64_t warmup = whole("warmup");
  const std::string form = named("nanogpt") ? "nanogpt" : (named("shifted") ? "hf_shifted" : "hf");
  if (named("wsd_exponential")) {
    return WsdSchedule{.warmup = warmup,
                       .decay = whole("steps") - whole("stable"),
                       .decay_shape = "exponential",
                       .half_life = whole("decay_half_life")};
  }
  if (named("wsd")) {
    return WsdSchedule{.warmup = warmup,
                       .decay = whole("decay"),
                       .decay_shape = oracle.word("decay_type"),
                       .floor = oracle.setting("min_ratio"),
                       .warmup_shape = oracle.word("warmup_type"),
                       .form = "hf"};
  }
  if (named("restarts_sgdr")) {
    return RestartsSchedule{.floor = oracle.setting("min_ratio"),
                            .first_period = whole("first_period"),
                            .period_factor = whole("period_mult")};
  }
  if (named("restarts")) {
    return RestartsSchedule{.warmup = warmup, .cycles = oracle.setting("cycles"), .form = form};
  }
  if (named("cosine")) {
    return CosineSchedule{warmup, oracle.setting("min_ratio"), oracle.setting("cycles", 0.5), form};
  }
  if (named("polynomial") || named("linear_warmup_linear")) {
    return LinearSchedule{warmup, oracle.setting("end_ratio", 0), oracle.setting("power", 1), form};
  }
  if (named("inverse_sqrt")) {
    return InverseSqrtSchedule{warmup, whole("timescale"), whole("d_model"),
                               named("noam") ? "noam" : "hf"};
  }
  if (named("constant")) {
    return ConstantSchedule{.warmup = warmup, .form = form};
  }
  return std::nullopt;
}

int64_t total_of(const Oracle& oracle) {
  const double steps = oracle.setting("steps");
  if (oracle.hyper.contains("stable") && oracle.hyper.contains("decay")) {
    return static_cast<int64_t>(oracle.setting("warmup") + oracle.setting("stable") +
                                oracle.setting("decay"));
  }
  return static_cast<int64_t>(oracle.setting("total", steps));
}

TEST(ScheduleOracles, RatesFollowTheReference) {
  const auto files = oracle_files("methods/schedule");
  ASSERT_FALSE(files.empty()) << "no fixtures in " << oracle_folder();
  int run = 0;
  std::string missing;
  for (const auto& path : files) {
    const Oracle oracle = read_oracle(path);
    const auto schedule = schedule_of(oracle);
    if (!schedule) {
      missing.append(" ").append(oracle.method);
      continue;
    }
    std::vector<double> rates;
    for (int64_t t = 0; t < static_cast<int64_t>(oracle.setting("steps")); ++t) {
      rates.push_back(learning_rate(*schedule, oracle.setting("lr"), t, total_of(oracle)));
    }
    const auto count = static_cast<int64_t>(rates.size());
    expect_entry(oracle, "lr", tensor_of(rates, {count}));
    ++run;
  }
  EXPECT_GE(run, 17);
  if (!missing.empty()) {
    std::cout << "not implemented yet:" << missing << "\n";
  }
}

}  // namespace
}  // namespace ingot::testing
