#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class Inspect : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  Workplace work;
};

TEST_F(Inspect, WritesTheChainRuleOutForTwoFunctions) {
  const Outcome outcome = work.run({"inspect", "graph"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const double e = std::exp(0.25);
  char derivative[32];
  std::snprintf(derivative, sizeof derivative, "dy/dx = %.12g,", std::cos(e) * e);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("sin(exp(x²))"), HasSubstr("square"), HasSubstr(derivative)));
}

TEST_F(Inspect, ListsTheOperationsOfARecipesStep) {
  const Outcome outcome = work.run({"inspect", "graph", "tiny.toml", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json lines = Json::parse(outcome.out);
  int attentions = 0;
  for (const Json& line : lines) {
    attentions += line["op"] == "attention";
    EXPECT_GT(line["norm"].get<double>(), 0) << line;
    for (const Json& gradient : line["gradients"]) {
      EXPECT_TRUE(std::isfinite(gradient.get<double>())) << line;
    }
    if (line["op"] == "attention") {
      EXPECT_EQ(line["part"], "layers.0");
      EXPECT_EQ(line["shape"], Json({4, 16, 2, 8}));
      EXPECT_EQ(line["gradients"].size(), 3u);  // q, k and v
    }
  }
  EXPECT_EQ(attentions, 1);
  EXPECT_THAT(work.run({"inspect", "graph", "tiny.toml"}).out, HasSubstr("linear_cross_entropy"));
}

// Every architecture's mask is the kernel's own: causal, with a window and a cap of the scores.
TEST_F(Inspect, AttentionWeightsOfEachQuerySumToOneAndAreCausal) {
  for (const Words& shape :
       {Words{}, Words{"--set", "model.kv_heads=1"},
        Words{"--set", "model.window=4", "--set", "model.attention_softcap=20"}}) {
    std::filesystem::remove_all(work / "run");
    ASSERT_EQ(work.run(work.train("run", shape)).code, 0);
    const Outcome outcome =
        work.run({"inspect", "attention", "run/model", "--text", "and the light", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json found = Json::parse(outcome.out);
    ASSERT_EQ(found["heads"].size(), 2u);
    for (const Json& head : found["heads"]) {
      ASSERT_EQ(head["weights"].size(), found["tokens"].size());
      for (size_t query = 0; query < head["weights"].size(); ++query) {
        double sum = 0;
        for (size_t key = 0; key < head["weights"][query].size(); ++key) {
          const double weight = head["weights"][query][key];
          sum += weight;
          const bool seen = key <= query && (shape.size() < 4 || key + 4 > query);
          EXPECT_EQ(weight > 0, seen) << query << ", " << key;
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    }
  }
  EXPECT_THAT(work.run({"inspect", "attention", "run/model", "--text", "light"}).out,
              HasSubstr("entropy"));
  EXPECT_THAT(work.run({"inspect", "attention", "run/model", "--text", "light", "--layer", "0",
                        "--head", "1"})
                  .out,
              HasSubstr("| 1.000000"));
}

TEST_F(Inspect, SaysWhatDoesNotExist) {
  ASSERT_EQ(work.run(work.train("run")).code, 0);
  const auto error = [&](const Words& more) {
    const Outcome outcome = work.run(joined({"inspect", "attention", "run/model"}, more));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"--text", "a", "--layer", "1"}),
              HasSubstr("--layer 1: the model has 1 layers"));
  EXPECT_THAT(error({"--text", "a", "--head", "2"}), HasSubstr("--head 2: layers have 2 heads"));
  EXPECT_THAT(error({"--text", std::string(40, 'a')}),
              HasSubstr("--text has 40 tokens, the model's context 16"));
}

}  // namespace
}  // namespace ingot::testing
