// Models with heads for further tokens, trained from recipes by the built program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/json.h"
#include "tests/cli/program.h"
#include "tests/cli/resume.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class MultiTokenRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  Outcome run(const Words& words) const {
    Outcome outcome = work.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  Words train(const std::string& name, const Words& settings) const {
    Words out = work.train(name);
    for (const std::string& setting : settings) {
      out = joined(out, {"--set", setting});
    }
    return out;
  }

  Workplace work;
};

TEST_F(MultiTokenRuns, WithoutHeadsTheirWeightIsRefused) {
  const Outcome refused = work.run(train("weighed", {"train.mtp_weight=5"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("train.mtp_weight: has no effect in this run"), std::string::npos)
      << refused.err;
}

TEST_F(MultiTokenRuns, LearnDraftAndLeaveTheirHeadsOutWhereThatIsAsked) {
  for (const char* kind : {"sequential", "parallel"}) {
    const std::string name = kind;
    const Words settings = {"model.mtp.depth=2", "model.mtp.kind=" + name, "train.steps=400",
                            "train.batch=16",    "optim.lr=1e-2",          "model.layers=2",
                            "evaluate.every=0",  "checkpoint.every=0",     "model.context=64",
                            "train.mtp_weight=1"};
    Words plan = {"plan", "tiny.toml", "--json"};
    for (const std::string& setting : settings) {
      plan = joined(plan, {"--set", setting});
    }
    const Json planned = Json::parse(run(plan).out);
    run(train(name, settings));
    const double reached = std::stod(logged(work / name, "memory").back().substr(4));
    EXPECT_NEAR(planned["memory"]["train"]["peak"].get<double>(), reached, 0.02 * reached);
    // Words of eight: once one has begun the letters after it are known.
    EXPECT_LT(std::stod(logged(work / name, "mtp_loss_1").back().substr(4)), 1.5) << kind;
    EXPECT_EQ(parse_json_file(work / (name + "/model/config.json"))["model_type"], "ingot");
    const Words how = {"--prompt", "in the beg", "--tokens", "40", "--temperature", "0", "--json"};
    const Json plain = Json::parse(run(joined({"generate", name + "/model"}, how)).out);
    const Json drafted =
        Json::parse(run(joined({"generate", name + "/model", "--self-speculative"}, how)).out);
    EXPECT_EQ(drafted["ids"], plain["ids"]) << kind;
    EXPECT_GT(drafted["tokens_per_round"], 1.3) << kind;
    run({"convert", name + "/model", name + "-plain", "--drop-mtp"});
    EXPECT_EQ(parse_json_file(work / (name + "-plain/config.json"))["model_type"], "llama");
    const Outcome refused = work.run({"convert", name + "/model", "x.gguf"});
    EXPECT_EQ(refused.code, 2);
    run({"convert", name + "/model", name + ".gguf", "--drop-mtp"});
    const Json from_gguf = Json::parse(run(joined({"generate", name + ".gguf"}, how)).out);
    EXPECT_EQ(from_gguf["ids"], plain["ids"]);
  }
}

TEST_F(MultiTokenRuns, AreGivenToATrainedModel) {
  run(train("short", {"train.steps=100", "optim.lr=1e-2"}));
  const Outcome outcome = run(train(
      "more", {"model.from=short/model", "model.mtp.depth=1", "train.steps=1", "optim.lr=1e-9"}));
  const double before = std::stod(logged(work / "short", "loss").back().substr(4));
  const double head = std::stod(logged(work / "more", "mtp_loss_1").front().substr(2));
  EXPECT_GT(head, 5);  // new, where the model is trained
  EXPECT_LT(before, 4);
}

TEST_F(MultiTokenRuns, ContinueAfterKillsBitForBit) {
  expect_survives({.settings = {"dtype=bf16", "model.mtp.depth=1", "train.accumulate=2",
                                "train.recompute=true"},
                   .every = 2,
                   .kills = 3,
                   .seed = 4});
}

}  // namespace
}  // namespace ingot::testing
