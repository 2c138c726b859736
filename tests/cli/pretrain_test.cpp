#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;

class Pretraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  // The losses of the training steps, and the last one on held-out text.
  struct Losses {
    double first = 0, held_out = 0;
    double held_out_bits = 0;  // per byte
  };
  Losses losses(const std::string& run) const {
    Losses out;
    for (const std::string& line : lines_of(content(work / run / "log.jsonl"))) {
      const Json entry = Json::parse(line);
      if (entry.contains("validation_loss")) {
        out.held_out = entry["validation_loss"];
        out.held_out_bits = entry["validation_bits"];
      } else if (entry["step"] == 1) {
        out.first = entry["loss"];
      }
    }
    return out;
  }

  Workplace work;
};

// −Σ p(a, b) log₂ p(b | a) of neighbouring bytes: what knowing one byte back comes to.
double bigram_entropy(const std::string& text) {
  std::vector<std::array<double, 256>> counts(256);
  std::array<double, 256> sums{};
  for (size_t i = 1; i < text.size(); ++i) {
    const auto before = static_cast<uint8_t>(text[i - 1]);
    counts[before][static_cast<uint8_t>(text[i])] += 1;
    sums[before] += 1;
  }
  double bits = 0;
  for (size_t a = 0; a < 256; ++a) {
    for (const double count : counts[a]) {
      bits -= count > 0 ? count * std::log2(count / sums[a]) : 0;
    }
  }
  return bits / static_cast<double>(text.size() - 1);
}

TEST_F(Pretraining, BeginsAtTheLogarithmOfTheVocabularyAndEndsBelowTheBigrams) {
  const std::string text = some_text(40000);
  put(work / "text.txt", text);
  ASSERT_EQ(work.run({"tokenizer", "train", "text.txt", "--vocab", "264", "--special",
                      "<|endoftext|>", "--out", "tokenizer"})
                .code,
            0);
  const Words words = {"--set", "train.steps=600", "--set", "optim.lr=1e-2",
                       "--set", "model.vocab=264", "--set", "data.tokenizer=tokenizer"};
  ASSERT_EQ(work.run(work.train("base", words)).code, 0);
  const Losses found = losses("base");
  EXPECT_NEAR(found.first, std::log(264), 0.1);
  EXPECT_LT(found.held_out_bits, 0.8 * bigram_entropy(text));
  // The model writes words of its text, and is where fine-tuning and evaluation begin.
  const Outcome written =
      work.run({"generate", "base/model", "--prompt", "in the ", "--tokens", "40", "--seed", "1"});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_TRUE(written.out.find("beginning") != std::string::npos ||
              written.out.find("light") != std::string::npos ||
              written.out.find("word") != std::string::npos)
      << written.out;
  const Outcome measured = work.run({"eval", "base/model", "--text", "text.txt", "--json"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  put(work / "rows.jsonl", R"({"prompt": "in ", "completion": "the"}
{"prompt": "and ", "completion": "light"}
{"prompt": "was ", "completion": "word"}
{"prompt": "the ", "completion": "beginning"}
)");
  put(work / "pairs.jsonl", R"({"prompt": "in ", "chosen": "the", "rejected": "xyz"}
{"prompt": "and ", "chosen": "light", "rejected": "qqq"}
{"prompt": "was ", "chosen": "word", "rejected": "zzzz"}
{"prompt": "the ", "chosen": "beginning", "rejected": "jjj"}
)");
  for (const char* recipe : {R"(kind = "sft"
[data]
files = ["rows.jsonl"]
)",
                             R"(kind = "dpo"
[data]
files = ["pairs.jsonl"]
)"}) {
    put(work / "next.toml", std::string(recipe) + R"(validation_fraction = 0.5
[model]
from = "base/model"
[train]
steps = 3
batch = 2
sequence = 16
[sample]
tokens = 0
)");
    std::filesystem::remove_all(work / "next");
    const Outcome next = work.run({"train", "next.toml", "--quiet", "--no-speed", "--run", "next"});
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_TRUE(std::filesystem::exists(work / "next/model/config.json"));
  }
}

TEST_F(Pretraining, LearnsWhatRepeatsToALossOfNothing) {
  std::string text;
  while (text.size() < 8000) {
    text += "abcdefghijklmnop";
  }
  put(work / "text.txt", text);
  ASSERT_EQ(
      work.run(work.train("base", {"--set", "train.steps=500", "--set", "optim.lr=1e-2"})).code, 0);
  const Losses found = losses("base");
  EXPECT_NEAR(found.first, std::log(256), 0.1);
  EXPECT_LT(found.held_out, 0.01);
}

}  // namespace
}  // namespace ingot::testing
