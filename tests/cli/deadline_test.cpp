// Runs that are over by a time, and runs that anneal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

Words settings(const Words& all) {
  Words out;
  for (const std::string& one : all) {
    out.insert(out.end(), {"--set", one});
  }
  return out;
}

std::string clock_in(int seconds) {
  const std::time_t then = std::time(nullptr) + seconds;
  std::tm broken{};
  ::localtime_r(&then, &broken);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &broken);
  return text;
}

double number(const std::string& logged) { return std::stod(logged.substr(logged.find(' ') + 1)); }

class DeadlineRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;
};

TEST_F(DeadlineRuns, EndWithADecayBeforeTheirTime) {
  const auto began = std::chrono::steady_clock::now();
  const Outcome done = work.run(
      work.train("run", settings({"train.steps=1000000", "schedule.kind=wsd", "schedule.decay=5",
                                  "optim.lr=0.01", "checkpoint.every=100000", "evaluate.every=0",
                                  "train.until=\"" + clock_in(6) + "\"", "sample.tokens=0"})));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_LE(seconds, 12);  // the processor may be busy when the run saves and measures at the end
  const Words rates = logged(work / "run", "lr");
  ASSERT_GE(rates.size(), 6u);
  EXPECT_LT(rates.size(), 1000000u);
  EXPECT_EQ(number(rates[rates.size() - 6]), 0.01);
  for (size_t i = rates.size() - 4; i < rates.size(); ++i) {
    EXPECT_LT(number(rates[i]), number(rates[i - 1]));
  }
  EXPECT_NEAR(number(rates.back()), 0.01 / 5, 1e-9);
  EXPECT_FALSE(model_bytes(work / "run").empty());
}

TEST_F(DeadlineRuns, AnnealingReadsOtherFilesFromTheDecayOn) {
  put(work / "good.txt", some_text(3000));
  const Words annealing = settings({"train.steps=6", "schedule.kind=wsd", "schedule.decay=2",
                                    "checkpoint.every=5", "data.anneal_files=[\"good.txt\"]"});
  const Outcome done = work.run(work.train("run", annealing));
  ASSERT_EQ(done.code, 0) << done.err;
  for (const int step : {4, 5, 6}) {
    const Outcome replayed = work.run({"replay", "run", "--step", std::to_string(step), "--json"});
    ASSERT_EQ(replayed.code, 0) << replayed.out << replayed.err;
    const auto said = nlohmann::json::parse(replayed.out);
    EXPECT_EQ(said["same"], true);
    for (const auto& document : said["documents"]) {
      EXPECT_EQ(document["file"], step > 4 ? "good.txt" : "text.txt") << step;
    }
  }
  // Without it the steps before the decay are the same, and those of the decay are not.
  const Outcome plain = work.run(
      work.train("plain", settings({"train.steps=6", "schedule.kind=wsd", "schedule.decay=2"})));
  ASSERT_EQ(plain.code, 0) << plain.err;
  const Words a = logged(work / "run", "loss");
  const Words b = logged(work / "plain", "loss");
  ASSERT_EQ(a.size(), 6u);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 4, b.begin()));
  EXPECT_NE(a[4], b[4]);
}

TEST_F(DeadlineRuns, SayWhatTheyCannotDo) {
  const Outcome no_time = work.run(work.train(
      "run", settings({"schedule.kind=wsd", "schedule.decay=1", "train.until=\"late\""})));
  EXPECT_EQ(no_time.code, 2);
  EXPECT_THAT(no_time.err, HasSubstr("train.until: not understood: got \"late\""));
  const Outcome rows = work.run(work.train(
      "run", settings({"schedule.kind=wsd", "schedule.decay=1", "data.files=[\"rows.jsonl\"]",
                       "data.anneal_files=[\"text.txt\"]"})));
  EXPECT_NE(rows.code, 0);
}

}  // namespace
}  // namespace ingot::testing
