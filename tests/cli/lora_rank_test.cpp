#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/io/safetensors.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/singular_values.h"
#include "ingot/tensor/copy.h"
#include "tests/cli/sft_workplace.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A sweep over ranks: losses beside numbers of parameters, and updates of no higher rank.
TEST(LoraRank, IsThatOfTheUpdateAndDecidesTheNumberOfParameters) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const SftWorkplace work;
  const Outcome outcome =
      work.run({"sweep", "sft.toml", "--quiet", "--json", "--out", "ranks", "--vary",
                "peft.rank=1,4,16", "--set", "peft.kind=lora", "--set", "train.steps=30"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json trials = Json::parse(outcome.out)["trials"];
  ASSERT_EQ(trials.size(), 3u);
  for (const Json& trial : trials) {
    const auto rank = std::stoll(trial["set"]["peft.rank"].get<std::string>());
    SCOPED_TRACE(rank);
    EXPECT_FALSE(trial["diverges"].get<bool>());
    const std::string run = trial["run"];
    const SafetensorsFile adapter(work / run / "adapter/adapter_model.safetensors");
    int64_t expected = 0;
    int64_t stored = 0;
    int maps = 0;
    for (const SafetensorsEntry& entry : adapter.entries()) {
      const std::string& name = entry.name;
      const size_t at = name.find("lora_A");
      const Tensor a = converted(adapter.tensor(name), DType::f64);
      stored += a.elements();
      if (at == std::string::npos) {
        continue;
      }
      const std::string other = name.substr(0, at) + "lora_B" + name.substr(at + 6);
      const Tensor b = converted(adapter.tensor(other), DType::f64);
      expected += rank * (a.size(1) + b.size(0));
      const std::vector<double> values = singular_values(matmul(b, a));
      EXPECT_LE(numerical_rank(values, GramMatrix(b.size(0), a.size(1)).tolerance()), rank) << name;
      EXPECT_GT(values.front(), 0) << name << " has learnt nothing";
      ++maps;
    }
    EXPECT_EQ(maps, 14);  // seven in each of two layers
    EXPECT_EQ(stored, expected);
    EXPECT_THAT(content(work / (run + ".txt")),
                HasSubstr("; " + std::to_string(expected) + " of "));
  }
  EXPECT_LT(trials[0]["loss"].get<double>(), 6);
}

}  // namespace
}  // namespace ingot::testing
