#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Words sweep(const Words& more) const {
    return joined({"sweep", "tiny.toml", "--quiet", "--out", "out", "--set", "train.steps=40",
                   "--set", "checkpoint.every=0", "--set", "evaluate.every=0"},
                  more);
  }

  Workplace work;
};

// Of seven rates over five powers of ten, the middle ones learn best and the last does not learn.
TEST_F(Sweep, OfTheLearningRateIsAUWithItsDivergingEndNamed) {
  const Words words =
      sweep({"--vary", "optim.lr=1e-5..100", "--set", "optim.kind=sgd", "--set", "optim.clip=0"});
  const Outcome outcome = work.run(joined(words, {"--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  ASSERT_EQ(found["trials"].size(), 7u);
  std::map<double, Json> trials;
  for (const Json& trial : found["trials"]) {
    trials[std::stod(trial["set"]["optim.lr"].get<std::string>())] = trial;
  }
  EXPECT_TRUE(trials.rbegin()->second["diverges"].get<bool>());
  EXPECT_FALSE(trials.begin()->second["diverges"].get<bool>());
  const Json& best = found["trials"][0];
  const double best_rate = std::stod(best["set"]["optim.lr"].get<std::string>());
  EXPECT_LT(best["loss"], trials.begin()->second["loss"].get<double>() - 0.1);
  for (const auto& [rate, trial] : trials) {
    EXPECT_TRUE(trial["diverges"].get<bool>() || trial["loss"] >= best["loss"].get<double>());
  }
  EXPECT_GE(found["recommended"].get<double>(), best_rate / 2.001);
  EXPECT_LE(found["recommended"].get<double>(), best_rate * 2.001);
  EXPECT_THAT(content(work / "out/best.toml"), HasSubstr("sgd"));
  EXPECT_THAT(content(work / "out/sweep.svg"), HasSubstr("log10 optim.lr"));
  // Nothing is trained again, and the same table is drawn.
  const Outcome again = work.run(words);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("diverges"), HasSubstr("← best"),
                               HasSubstr("recommended: optim.lr "), HasSubstr("█")));
  const Outcome run =
      work.run({"train", "out/best.toml", "--quiet", "--no-speed", "--run", "best"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(Sweep, HalvingStopsTheWorseTrialsEarly) {
  const Outcome outcome = work.run(
      sweep({"--vary", "optim.lr=1e-5..1e-2", "--method", "asha", "--trials", "9", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  int64_t trained = 0;
  int64_t whole = 0;
  for (const Json& trial : found["trials"]) {
    trained += trial["steps"].get<int64_t>();
    whole += trial["steps"] == 40;
  }
  EXPECT_EQ(found["trials"][0]["steps"], 40);
  EXPECT_GE(whole, 1);
  EXPECT_LE(trained, 40 * 9 / 2);
}

TEST_F(Sweep, GoesOnAfterItWasInterrupted) {
  const Words words = sweep(
      {"--vary", "optim.lr=1e-4,1e-3", "--vary", "seed=1,2", "--set", "train.steps=300", "--json"});
  {
    Child child(work.path(), words);
    while (!fs::exists(work / "out/trial-001/log.jsonl") && child.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    child.send(SIGTERM);  // as Ctrl-C: the trial that runs saves and stops
    EXPECT_EQ(child.wait().code, 130);
  }
  EXPECT_FALSE(fs::exists(work / "out/best.toml"));
  const std::string first = content(work / "out/trial-000/log.jsonl");
  const Outcome outcome = work.run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["trials"].size(), 4u);
  EXPECT_EQ(content(work / "out/trial-000/log.jsonl"), first);
}

TEST_F(Sweep, SaysWhatIsWrongBeforeItTrains) {
  const auto error = [&](const Words& more) {
    const Outcome outcome = work.run(sweep(more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_FALSE(fs::exists(work / "out/trial-000"));
    return outcome.err;
  };
  EXPECT_THAT(error({}), HasSubstr("sweep: nothing to vary; give --vary optim.lr=1e-4..1e-1"));
  EXPECT_THAT(error({"--vary", "optim.rl=1,2"}), HasSubstr("the nearest is optim.lr"));
  EXPECT_THAT(error({"--vary", "model.layers=1..2"}), HasSubstr("model.layers"));
  EXPECT_THAT(error({"--vary", "train.steps=10,20"}), HasSubstr("leave it out of --vary"));
  const Outcome good = work.run(sweep({"--vary", "seed=1,2", "--set", "train.steps=3"}));
  ASSERT_EQ(good.code, 0) << good.err;
  const Outcome other = work.run(sweep({"--vary", "seed=1,3", "--set", "train.steps=3"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("another sweep is in this folder: its vary is"));
}

TEST_F(Sweep, ARunPausesAfterAStepAndGoesOnToTheSameBits) {
  const Words whole = work.train("whole");
  ASSERT_EQ(work.run(whole).code, 0);
  const Outcome paused = work.run(work.train("parts", {"--pause-after", "3"}));
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_FALSE(fs::exists(work / "parts/model"));
  ASSERT_EQ(work.run(work.train("parts", {"--resume"})).code, 0);
  EXPECT_EQ(model_bytes(work / "parts"), model_bytes(work / "whole"));
}

}  // namespace
}  // namespace ingot::testing
