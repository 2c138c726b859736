#include "ingot/cli/selftest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ingot/optim/table.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

TEST(SelftestOptim, EveryOptimizerReachesItsTargetOnEveryProblem) {
  std::set<std::string> seen;
  for (const OptimizerRun& run : selftest_optim()) {
    EXPECT_LE(run.loss, run.target)
        << run.optimizer << " on " << run.problem << ", lr " << run.learning_rate;
    seen.insert(run.optimizer);
  }
  for (const std::string& name : rule_names()) {
    EXPECT_TRUE(seen.contains(name)) << name << " is not tried";
  }
}

TEST(OptimList, ShowsEveryKindWithTheBytesOfItsState) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  const Outcome listed = work.run({"optim", "list", "--json"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  std::map<std::string, double> bytes;
  for (const auto& row : nlohmann::json::parse(listed.out)) {
    bytes[row.at("kind")] = row.at("state_bytes_per_matrix_parameter");
  }
  for (const std::string& name : rule_names()) {
    EXPECT_TRUE(bytes.contains(name)) << name;
  }
  EXPECT_EQ(bytes.at("adamw"), 8);
  EXPECT_EQ(bytes.at("sgd"), 0);
  EXPECT_EQ(bytes.at("lion"), 4);
  EXPECT_EQ(bytes.at("muon"), 4);
  EXPECT_EQ(bytes.at("schedule_free_adamw"), 8 + 16.0 / (1 << 20));
  EXPECT_EQ(bytes.at("adafactor"), 2 * 4 * 1024.0 / (1 << 20));
  EXPECT_EQ(bytes.at("adamw_8bit"), 2 + 2 * 4.0 / 256);
  EXPECT_EQ(bytes.at("soap"), 8 + 4 * 4);
}

TEST(Branch, ContinuesACheckpointWithAnotherLengthAndSchedule) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  const auto settings = [](const Words& all) {
    Words out;
    for (const std::string& one : all) {
      out.insert(out.end(), {"--set", one});
    }
    return out;
  };
  const Outcome stable = work.run(
      work.train("main", settings({"schedule.kind=wsd", "schedule.decay=1", "checkpoint.keep=9"})));
  ASSERT_EQ(stable.code, 0) << stable.err;
  const Words from = {"--branch", "main/checkpoints/step-00000002"};
  const Words decay = settings({"schedule.kind=wsd", "schedule.decay=2", "train.steps=4"});
  const Outcome branch = work.run(work.train("branch", joined(from, decay)));
  EXPECT_EQ(branch.code, 0) << branch.err;
  const auto steps = lines_of(content(work / "branch/log.jsonl"));
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(nlohmann::json::parse(steps[0]).at("step"), 3);
  const Outcome other =
      work.run(work.train("other", joined(joined(from, decay), settings({"train.batch=8"}))));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("branch: the recipe changed: train.batch"), std::string::npos)
      << other.err;
  const Outcome late = work.run(work.train("late", joined(from, settings({"train.steps=2"}))));
  EXPECT_EQ(late.code, 2);
}

}  // namespace
}  // namespace ingot::testing
