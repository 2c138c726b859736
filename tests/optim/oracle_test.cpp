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

TEST(ClippingOracles, NormsAndClippedGradientsFollowTheReference) {
  int run = 0;
  for (const auto& path : oracle_files("methods/optim")) {
    const Oracle oracle = read_oracle(path);
    if (oracle.method.starts_with("clip_")) {
      SCOPED_TRACE(oracle.file);
      ASSERT_TRUE(knows(oracle.hyper, {"mode", "norm_type", "max_norm"})) << oracle.hyper;
      run_clip(oracle, DType::f64);
      run_clip(oracle, DType::f32);
      ++run;
    }
  }
  EXPECT_GT(run, 0) << "no fixtures in " << oracle_folder();
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
  for (const auto& path : files) {
    const Oracle oracle = read_oracle(path);
    const auto schedule = schedule_of(oracle);
    if (!schedule) {
      ADD_FAILURE() << oracle.method << ": no schedule of this name is known to the test";
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
}

}  // namespace
}  // namespace ingot::testing
