#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/json_library.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Speeds are no test's business; that the figures fit one another is.
class Bench : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;

  Json json(const Words& arguments) {
    const Outcome outcome = work.run(joined(joined({"bench"}, arguments), {"--json"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST_F(Bench, AStepsKernelsMakeUpItsTimeAndItsArithmetic) {
  const Json step = json({"step", "tiny.toml", "--steps", "2", "--trace", "trace.json"});
  EXPECT_EQ(step["losses"].size(), 3);
  double seconds = 0;
  double flops = 0;
  int64_t calls = 0;
  for (const Json& kernel : step["kernels"]) {
    seconds += kernel["seconds"].get<double>();
    flops += kernel["flops"].get<double>();
    calls += kernel["calls"].get<int64_t>();
    EXPECT_GE(kernel["limit_seconds"].get<double>(), 0) << kernel;
  }
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, step["recorded_seconds"].get<double>());
  EXPECT_NEAR(
      flops / (step["flops_per_second"].get<double>() * step["seconds_per_step"].get<double>()), 1,
      1e-6);
  const Json trace = Json::parse(content(work / "trace.json"));
  ASSERT_EQ(trace["traceEvents"].size(), calls);
  double before = 0;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), before);  // calls of a step do not overlap
    before = event["ts"].get<double>() + event["dur"].get<double>() - 1e-3;
  }
}

TEST_F(Bench, ATraceThatCannotBeWrittenIsRefusedBeforeTheSteps) {
  const Outcome outcome =
      work.run({"bench", "step", "tiny.toml", "--steps", "1000000000", "--trace", "none/t.json"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("none/t.json"));
}

TEST_F(Bench, AStepInItsSteadyStateAsksTheSystemForNoMemory) {
  EXPECT_EQ(json({"step", "tiny.toml", "--steps", "2"})["system_calls"], 0);
}

TEST_F(Bench, TheProductsAreThoseOfTheRecipesLayers) {
  const Json found = json({"gemm", "tiny.toml"})["products"];
  ASSERT_GT(found.size(), 0);
  EXPECT_EQ(found.size() % 3, 0);
  for (const Json& product : found) {
    const double flops = 2.0 * product["rows"].get<double>() * product["weight"][0].get<double>() *
                         product["weight"][1].get<double>();
    EXPECT_EQ(product["flops"].get<double>(), flops);
  }
}

TEST_F(Bench, OpsAreChosenByName) {
  const Json found = json({"ops", "--only", "rms_norm", "add_rms"})["ops"];
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0]["name"], "rms_norm");
  EXPECT_GE(found[0]["bytes"].get<double>(), 4 * 1024 * 768 * 2);  // x, y, dy, dx
  const Outcome unknown = work.run({"bench", "ops", "--only", "nothing"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--only fits no op"));
}

TEST_F(Bench, GenerationReadsEveryWeightOncePerStep) {
  const Json found = json({"generate", "tiny.toml", "--prompt", "4", "--tokens", "4"});
  EXPECT_GT(found["bytes_per_token"].get<double>(), 0);
  EXPECT_GT(found["tokens_per_second"].get<double>(), 0);
  EXPECT_GT(found["prompt_flops_per_second"].get<double>(), 0);
  const Json coded =
      json({"generate", "tiny.toml", "--prompt", "4", "--tokens", "4", "--kv", "int8"});
  EXPECT_LT(coded["bytes_per_token"].get<double>(), found["bytes_per_token"].get<double>());
  // Two forwards of up to 8 texts read the weights twice.
  const Json two =
      json({"generate", "tiny.toml", "--prompt", "4", "--tokens", "4", "--batch", "16"});
  EXPECT_NEAR(two["bytes_per_token"].get<double>(), found["bytes_per_token"].get<double>() / 8,
              found["bytes_per_token"].get<double>() / 8);
  const Outcome longer = work.run({"bench", "generate", "tiny.toml", "--prompt", "100000"});
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.err, AllOf(HasSubstr("--prompt 100000"), HasSubstr("model.context")));
  // As long as a number can be: the sum with --tokens would not fit.
  const Outcome longest =
      work.run({"bench", "generate", "tiny.toml", "--prompt", "9223372036854775807"});
  EXPECT_EQ(longest.code, 2);
  EXPECT_THAT(longest.err, HasSubstr("model.context"));
}

TEST_F(Bench, OptimizersAreRankedByTheirStepsToTheTargets) {
  const Json raced =
      json({"optim", "--targets", "--only", "adamw", "--only", "adagrad", "--seeds", "3"});
  EXPECT_EQ(raced["seeds"], 3);
  ASSERT_GE(raced["optimizers"].size(), 2u);
  double last = 1;
  for (const Json& one : raced["optimizers"]) {
    EXPECT_LE(one["score"].get<double>(), last);
    last = one["score"];
    ASSERT_EQ(one["problems"].size(), 4u);
    double before = 0;
    for (const Json& share : one["profile"]) {
      EXPECT_GE(share.get<double>(), before);
      before = share;
    }
  }
  // On each problem somebody is the best.
  double best = 0;
  for (const Json& one : raced["optimizers"]) {
    best += one["profile"][0].get<double>();
  }
  EXPECT_GE(best, 1 - 1e-9);
}

TEST_F(Bench, WatchingARunIsMeasuredInTurnsWithNotDoingSo) {
  const Json found = json({"observers", "tiny.toml", "--steps", "3"});
  EXPECT_GT(found["seconds_per_step"].get<double>(), 0);
  EXPECT_GT(found["seconds_of_observers"].get<double>(), 0);
  EXPECT_NEAR(found["share"].get<double>(),
              found["seconds_of_observers"].get<double>() / found["seconds_per_step"].get<double>(),
              1e-9);
}

TEST_F(Bench, AMeasuredStepIsWhatPlanPredictsTimesFrom) {
  const Words recipe = {"tiny.toml", "--set", "train.steps=1000"};
  const auto plan = [&](const Words& more) {
    const Outcome outcome = work.run(joined(joined({"plan"}, recipe), more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_FALSE(Json::parse(plan({"--json"})).contains("seconds"));
  EXPECT_THAT(plan({}), HasSubstr("not known: `ingot bench step RECIPE` measures"));
  const Json step = json(joined({"step"}, {"tiny.toml", "--steps", "3"}));
  const Json planned = Json::parse(plan({"--json"}));
  EXPECT_NEAR(planned["step_seconds"].get<double>(), step["seconds_per_step"].get<double>(), 1e-9);
  EXPECT_NEAR(planned["seconds"].get<double>(), 1000 * planned["step_seconds"].get<double>(), 1e-6);
  EXPECT_NEAR(planned["tokens_per_second"].get<double>() * planned["step_seconds"].get<double>(),
              64, 1e-6);
  // Twice the rows are twice the arithmetic, and are told to take twice the time.
  const Outcome wider = work.run({"plan", "tiny.toml", "--set", "train.batch=8", "--json"});
  EXPECT_NEAR(
      Json::parse(wider.out)["step_seconds"].get<double>() / planned["step_seconds"].get<double>(),
      2, 0.1);
  EXPECT_THAT(plan({}), HasSubstr(" in all: begun now it is over "));
  // A run says at its end what its steps were to take, and took.
  const Outcome trained = work.run({"train", "tiny.toml", "--no-speed", "--run", "run"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("; time of the steps: planned "));
  put(work / "speed.json", "[{\"dtype\": 3}]");
  const Outcome damaged = work.run({"plan", "tiny.toml"});
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("speeds measured before are not used: "));
}

}  // namespace
}  // namespace ingot::testing
