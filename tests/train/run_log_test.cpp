#include "ingot/train/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> out;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    out.push_back(nlohmann::json::parse(line));
  }
  return out;
}

StepReport report(int64_t step, double loss = 2.5) {
  StepReport out;
  out.step = step;
  out.tokens = 64;
  out.loss = loss;
  out.learning_rate = 0.001;
  out.grad_norm = 1.5;
  out.seconds = 0.5;
  out.flops = 1000;
  out.metrics = {{"accuracy", 0.75}};
  return out;
}

void add(RunLog& log, int64_t step, double loss = 2.5) {
  TrainState state;
  state.step = step;
  state.tokens = 64 * step;
  log.after_step(state, report(step, loss));
}

std::vector<int64_t> steps_of(const RunLog& log) {
  std::vector<int64_t> out;
  for (const LoggedStep& entry : log.steps()) {
    out.push_back(entry.step);
  }
  return out;
}

TEST(RunLog, WritesALineAStepWithEverythingThatPlotsNeed) {
  const TemporaryFolder folder;
  RunLog log(folder / "log.jsonl", 0, 1e5);
  add(log, 1);
  log.evaluated(1, {2.0, 128, 0.25});
  const std::vector<nlohmann::json> lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["tokens"], 64);
  EXPECT_EQ(lines[0]["loss"], 2.5);
  EXPECT_EQ(lines[0]["lr"], 0.001);
  EXPECT_EQ(lines[0]["grad_norm"], 1.5);
  EXPECT_EQ(lines[0]["tokens_per_second"], 128.0);
  EXPECT_EQ(lines[0]["mfu"], 0.02);  // 1000 operations in half a second of 10⁵ a second
  EXPECT_TRUE(lines[0]["memory"].is_number_integer());
  EXPECT_EQ(lines[0]["accuracy"], 0.75);
  EXPECT_EQ(lines[1]["step"], 1);
  EXPECT_EQ(lines[1]["validation_loss"], 2.0);
  EXPECT_NEAR(lines[1]["validation_bits"].get<double>(), 2.88539, 1e-5);
  EXPECT_EQ(lines[1]["validation_tokens"], 128);
}

TEST(RunLog, WritesValuesThatAreNotFiniteAsText) {
  const TemporaryFolder folder;
  RunLog log(folder / "log.jsonl", 0, 0);
  add(log, 1, std::numeric_limits<double>::quiet_NaN());
  add(log, 2, -std::numeric_limits<double>::infinity());
  const std::vector<nlohmann::json> lines = lines_of(folder / "log.jsonl");
  EXPECT_EQ(lines[0]["loss"], "nan");
  EXPECT_EQ(lines[1]["loss"], "-inf");
  EXPECT_TRUE(lines[0]["mfu"].is_null());  // the peak is unknown
}

TEST(RunLog, KeepsDoublesToTheLastBit) {
  const TemporaryFolder folder;
  const double loss = 2.0 / 3.0;
  {
    RunLog log(folder / "log.jsonl", 0, 0);
    add(log, 1, loss);
  }
  const RunLog again(folder / "log.jsonl", 1, 0);
  ASSERT_EQ(again.steps().size(), 1u);
  EXPECT_EQ(again.steps()[0].loss, loss);
}

TEST(RunLog, DropsTheStepsAfterTheCheckpointThatARunContinuesFrom) {
  const TemporaryFolder folder;
  {
    RunLog log(folder / "log.jsonl", 0, 0);
    for (int64_t step = 1; step <= 5; ++step) {
      add(log, step);
    }
    log.evaluated(3, {2.0, 128, 0.25});
    log.evaluated(5, {2.0, 128, 0.25});
  }
  RunLog log(folder / "log.jsonl", 3, 0);
  EXPECT_THAT(steps_of(log), ElementsAre(1, 2, 3));
  add(log, 4);
  const std::vector<nlohmann::json> lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 5u);  // three steps, the evaluation of step 3, step 4
  EXPECT_TRUE(lines[3].contains("validation_loss"));
  EXPECT_EQ(lines[4]["step"], 4);
}

TEST(RunLog, WritesAnEvaluationOfAStepOnce) {
  const TemporaryFolder folder;
  {
    RunLog log(folder / "log.jsonl", 0, 0);
    add(log, 1);
    EXPECT_FALSE(log.has_evaluation(1));
    log.evaluated(1, {2.0, 128, 0.25});
    EXPECT_TRUE(log.has_evaluation(1));
  }
  RunLog log(folder / "log.jsonl", 1, 0);
  EXPECT_TRUE(log.has_evaluation(1));
  log.evaluated(1, {2.0, 128, 0.25});
  EXPECT_EQ(lines_of(folder / "log.jsonl").size(), 2u);
}

TEST(RunLog, DropsALineThatAKillCutShortAndWhatIsNoLogLine) {
  const TemporaryFolder folder;
  write_file(folder / "log.jsonl",
             "{\"step\":1,\"loss\":3.5}\n"
             "\n[1,2]\nnonsense\n{\"loss\":1}\n{\"step\":\"2\",\"loss\":3}\n{\"step\":null}\n"
             "{\"step\":2,\"loss\":\"nan\"}\n"
             "{\"step\":3,\"lo");
  const RunLog log(folder / "log.jsonl", 10, 0);
  EXPECT_THAT(steps_of(log), ElementsAre(1));
  const std::vector<nlohmann::json> lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["loss"], "nan");
}

TEST(RunLog, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(ErrorKind::io, [&] { RunLog(folder / "absent/log.jsonl", 0, 0); }),
              HasSubstr((folder / "absent").string()));
}

}  // namespace
}  // namespace ingot::testing
