#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/json_library.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using Json = nlohmann::json;

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;

  std::string output(const Words& arguments) {
    const Outcome outcome = work.run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(Cli, HelpOfTheProgramAndOfEveryVerbShowsAnExample) {
  const std::string help = output({"--help"});
  EXPECT_THAT(help, HasSubstr("Example: ingot train recipes/kjv.toml"));
  for (const char* verb : {"train", "plan", "generate", "tokenizer", "convert", "quantize", "ckpt",
                           "optim", "bench", "selftest", "doctor"}) {
    EXPECT_THAT(help, HasSubstr(verb));
    const std::string own = output({verb, "--help"});
    EXPECT_THAT(own, HasSubstr(std::string("Example: ingot ") + verb)) << verb;
  }
}

TEST_F(Cli, TellsItsVersion) {
  EXPECT_THAT(output({"--version"}), MatchesRegex("ingot [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(Cli, DoctorIsReadableByPrograms) {
  const Json found = Json::parse(output({"doctor", "--json", "--no-speed"}));
  for (const char* section : {"machine", "instructions", "dispatch", "libraries"}) {
    ASSERT_TRUE(found.contains(section)) << section;
    for (const Json& finding : found[section]) {
      EXPECT_TRUE(finding["good"].is_boolean());
      EXPECT_EQ(finding["advice"].get<std::string>().empty(), finding["good"].get<bool>());
    }
  }
  EXPECT_THAT(output({"doctor", "--no-speed"}), HasSubstr("oneDNN"));
}

TEST_F(Cli, ListsEveryRecipeKey) {
  const std::string keys = output({"train", "--keys"});
  for (const char* key : {"model.width", "optim.lr", "schedule.kind", "train.accumulate",
                          "checkpoint.every", "data.files", "sample.prompt"}) {
    EXPECT_THAT(keys, HasSubstr(key));
  }
}

TEST_F(Cli, ASavedRecipeIsARecipe) {
  output(work.train("first"));
  const Outcome again =
      work.run({"train", "first/recipe.toml", "--quiet", "--no-speed", "--run", "second"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(model_bytes(work / "second"), model_bytes(work / "first"));
  EXPECT_EQ(content(work / "second/recipe.toml"), content(work / "first/recipe.toml"));
}

TEST_F(Cli, TheSummaryOfARunIsReadableByPrograms) {
  const Json summary = Json::parse(output(work.train("run", {"--json"})));
  EXPECT_EQ(summary["run"], "run");
  EXPECT_EQ(summary["steps"], 6);
  EXPECT_EQ(summary["tokens"], 6 * 64);
  const double parameters = summary["parameters"].get<double>();
  EXPECT_EQ(summary["tokens_per_parameter"].get<double>(), 6 * 64 / parameters);
  EXPECT_GT(summary["tokens_per_non_embedding_parameter"].get<double>(), 6 * 64 / parameters);
  EXPECT_GT(summary["validation_loss"].get<double>(), 1);
  EXPECT_GT(summary["peak_memory"].get<int64_t>(), 0);
}

TEST_F(Cli, QuietSaysNothingWhereAllIsWell) {
  const Outcome outcome = work.run(work.train("run", {"--json"}));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(Cli, LogsLossesAndTheMachinesShareUnlessToldNotToMeasure) {
  output({"train", "tiny.toml", "--quiet", "--run", "measured", "--set", "train.steps=1"});
  output(work.train("unmeasured", {"--set", "train.steps=1"}));
  EXPECT_THAT(logged(work / "measured", "mfu")[0], MatchesRegex("1 0\\.[0-9e-]+"));
  EXPECT_EQ(logged(work / "unmeasured", "mfu")[0], "1 null");
}

TEST_F(Cli, GeneratesTheSameTextFromTheSameSeed) {
  output(work.train("run"));
  const Words words = {"generate", "run/model", "--prompt", "in the ", "--tokens", "30", "--json"};
  const auto text = [&](const std::string& seed) {
    return Json::parse(output(joined(words, {"--seed", seed})))["ids"];
  };
  EXPECT_EQ(text("3").size(), 30u);
  EXPECT_EQ(text("3"), text("3"));
  EXPECT_NE(text("3"), text("4"));
  const Words greedy = joined(words, {"--temperature", "0"});
  EXPECT_EQ(Json::parse(output(joined(greedy, {"--seed", "1"})))["ids"],
            Json::parse(output(joined(greedy, {"--seed", "2"})))["ids"]);
}

TEST_F(Cli, GeneratesFromTokenIds) {
  output(work.train("run"));
  const Outcome outcome =
      work.run({"generate", "run/model", "--ids", "--prompt", "105,110,32", "--tokens", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("([0-9]+ ){4}\n"));
}

// Learned positions end at the context; a sample at the end of a run must not fail beyond it.
TEST_F(Cli, ASampleMayBeLongerThanTheContext) {
  const Outcome outcome =
      work.run(work.train("run", {"--set", "model.architecture=gpt2", "--set", "sample.tokens=60",
                                  "--set", "sample.prompt=in the"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Cli, ReadsAnyBytesAsText) {
  std::string text = some_text();
  for (size_t i = 0; i < text.size(); i += 7) {
    text[i] = static_cast<char>(i % 3 == 0 ? '\0' : '\xff');  // NUL and invalid UTF-8
  }
  put(work / "text.txt", text);
  EXPECT_EQ(work.run(work.train("run")).code, 0);
}

}  // namespace
}  // namespace ingot::testing
