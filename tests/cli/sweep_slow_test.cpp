#include <gtest/gtest.h>

#include <random>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;

// The same 27 random rates, trained to the end and by ASHA.
TEST(SweepSlow, AshaComesWithinTwoPercentOfAllTrialsInAThirdOfTheSteps) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  // Words in no order: the best model of them still has a loss, and trials differ by what they
  // learn.
  const Words vocabulary = {"in", "the", "beginning", "was", "word", "and", "light", "shone"};
  std::mt19937 random(1);
  std::string text;
  while (text.size() < 40000) {
    text += vocabulary[random() % vocabulary.size()] + " ";
  }
  put(work / "text.txt", text);
  const Words common = {"sweep",  "tiny.toml",        "--quiet",  "--json",
                        "--vary", "optim.lr=1e-5..1", "--trials", "27",
                        "--set",  "train.steps=270",  "--set",    "checkpoint.every=0",
                        "--set",  "evaluate.every=0"};
  const auto swept = [&](const Words& more) {
    const Outcome outcome = work.run(joined(common, more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["trials"];
  };
  const Json all = swept({"--method", "random", "--out", "all"});
  const Json halved = swept({"--method", "asha", "--rungs", "3", "--out", "halved"});
  int64_t steps = 0;
  for (const Json& trial : halved) {
    steps += trial["steps"].get<int64_t>();
  }
  EXPECT_LE(steps, 270 * 27 / 3);
  EXPECT_EQ(halved[0]["steps"], 270);
  EXPECT_LE(halved[0]["loss"].get<double>(), 1.02 * all[0]["loss"].get<double>());
}

}  // namespace
}  // namespace ingot::testing
