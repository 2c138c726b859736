#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ingot/base/json_library.h"
#include "ingot/io/checkpoint.h"
#include "ingot/tensor/copy.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;

  void train(const std::string& run, const Words& more = {}) {
    const Outcome outcome = work.run(work.train(run, more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  Outcome replay(const std::string& run, int64_t step, int code, const Words& more = {}) {
    Outcome outcome =
        work.run(joined({"replay", run, "--step", std::to_string(step), "--json"}, more));
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    return outcome;
  }
  // Writes a checkpoint again with one value of a parameter changed; its hashes are right.
  void change_weight(const fs::path& checkpoint, const std::string& name, float value) {
    Checkpoint changed = read_checkpoint(checkpoint);
    for (auto& [part, tensors] : changed.parts) {
      tensors = tensors.mapped([](const std::string&, const Tensor& x) { return copy_of(x); });
      if (tensors.contains(name)) {
        tensors.at(name).mutable_values<float>()[5] = value;
      }
    }
    save_checkpoint(checkpoint.parent_path(), changed);
  }
};

TEST_F(Faults, ANanInAWeightOfACheckpointIsNamedAtTheNextStep) {
  train("run");
  fs::remove_all(work / "run/checkpoints/step-00000006");
  change_weight(work / "run/checkpoints/step-00000004", "layers.0.mlp.up.weight",
                std::numeric_limits<float>::quiet_NaN());
  const Outcome verified = work.run({"ckpt", "verify", "run"});
  EXPECT_EQ(verified.code, 4);
  EXPECT_THAT(verified.err, HasSubstr("layers.0.mlp.up.weight: has values that are not finite"));
  const Outcome resumed = work.run(work.train("run", {"--resume"}));
  EXPECT_EQ(resumed.code, 4);
  EXPECT_THAT(resumed.err, HasSubstr("step 5: the loss is nan"));
  EXPECT_THAT(resumed.err, HasSubstr("the first value that is not finite is nan in the parameter "
                                     "layers.0.mlp.up.weight at [0, 5] of [32, 16]"));
}

TEST_F(Faults, AStepReplaysBitForBitFromItsCheckpointAndFromTheInitialWeights) {
  for (const char* settings : {"dtype=f32", "dtype=bf16"}) {
    const std::string run = std::string("run-") + settings;
    train(run, {"--set", settings, "--set", "model.dropout=0.1", "--set", "train.accumulate=2",
                "--set", "optim.kind=muon"});
    for (int64_t step = 1; step <= 6; ++step) {
      const auto said = nlohmann::json::parse(replay(run, step, 0).out);
      EXPECT_EQ(said["step"], step);
      EXPECT_EQ(said["from"], step == 6 || step == 5 ? 4 : 0);  // 4 and 6 are kept
      EXPECT_EQ(said["same"], true);
      EXPECT_EQ(said["loss"], said["recorded_loss"]);
      EXPECT_EQ(said["documents"].size(), 4u);
      for (const auto& document : said["documents"]) {
        EXPECT_EQ(document["file"], "text.txt");
        EXPECT_EQ(document["end"].get<int64_t>() - document["begin"].get<int64_t>(), 17);
        EXPECT_LE(document["end"].get<int64_t>(), 3600);
      }
    }
  }
}

TEST_F(Faults, ACorruptedDataRecordIsFoundAndNamed) {
  train("run");
  const auto document = nlohmann::json::parse(replay("run", 2, 0).out)["documents"][1];
  std::string text = content(work / "text.txt");
  const auto at = document["begin"].get<size_t>() + 3;
  text[at] = static_cast<char>(text[at] ^ 1);
  put(work / "text.txt", text);
  const Outcome resumed = work.run(work.train("run", {"--resume"}));
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("the training text changed"));
  const auto found = nlohmann::json::parse(replay("run", 2, 1).out);
  EXPECT_EQ(found["differing_step"], 2);
  EXPECT_THAT(found["difference"].get<std::string>(),
              AllOf(HasSubstr("text.txt " + document["begin"].dump() + " to "),
                    HasSubstr("the data changed")));
}

TEST_F(Faults, AChangedWeightShowsAsAStepThatDiffers) {
  train("run");
  change_weight(work / "run/checkpoints/step-00000004", "layers.0.mlp.up.weight", 0.25F);
  const auto said = nlohmann::json::parse(replay("run", 6, 1).out);
  EXPECT_EQ(said["differing_step"], 5);
  EXPECT_THAT(said["difference"].get<std::string>(), HasSubstr("the loss is "));
  const Outcome text = work.run({"replay", "run", "--step", "6"});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("step 6, run again from step 4"),
                              HasSubstr("differs since step 5: the loss is "),
                              HasSubstr("text.txt, bytes ")));
}

TEST_F(Faults, ReplaysThatCannotBe) {
  train("run");
  const auto said = [&](const Words& arguments) { return work.run(arguments); };
  EXPECT_EQ(said({"replay", "run"}).code, 2);
  EXPECT_EQ(said({"replay", "run", "--step", "0"}).code, 2);
  EXPECT_EQ(said({"replay", "run", "--step", "x"}).code, 2);
  EXPECT_EQ(said({"replay", "absent", "--step", "1"}).err,
            "ingot: absent: no journal.jsonl in it; give the folder of a run\n");
  EXPECT_EQ(said({"replay", "run", "--step", "7"}).err,
            "ingot: run/journal.jsonl: step 7 is not in it; has the run come that far?\n");
  put(work / "run/journal.jsonl", "{\"step\": 5}\n");
  EXPECT_EQ(said({"replay", "run", "--step", "5"}).code, 3);
}

TEST_F(Faults, RecheckingAndSealingChangeNothing) {
  train("plain");
  train("guarded",
        {"--set", "numbers.recheck=2", "--set", "numbers.seal=1", "--set", "numbers.diagnose=3"});
  EXPECT_EQ(logged(work / "plain", "loss"), logged(work / "guarded", "loss"));
  EXPECT_EQ(model_bytes(work / "plain"), model_bytes(work / "guarded"));
  EXPECT_EQ(logged(work / "guarded", "update_ratio/layers.0").size(), 2u);
}

TEST_F(Faults, HalfPrecisionWithALossScaleTrainsAndResumesBitForBit) {
  const Words settings = {"--set", "dtype=f16", "--set", "train.steps=12"};
  train("whole", settings);
  EXPECT_EQ(logged(work / "whole", "loss_scale").size(), 12u);
  train("run", settings);
  fs::remove_all(work / "run/checkpoints/step-00000012");
  fs::remove_all(work / "run/model");
  train("run", joined(settings, {"--resume"}));
  EXPECT_EQ(model_bytes(work / "run"), model_bytes(work / "whole"));
  const Outcome refused = work.run(work.train("new", {"--set", "numbers.non_finite=lower_scale"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("numbers.non_finite: only f16 has a loss scale: dtype is f32; "
                                     "choose halt or skip"));
}

}  // namespace
}  // namespace ingot::testing
