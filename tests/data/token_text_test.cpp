#include "ingot/data/token_text.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ingot/base/error.h"
#include "ingot/text/train_bpe.h"
#include "ingot/text/utf8.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

class TokenTexts : public ::testing::Test {
 protected:
  // A text of two-byte characters, so that most places are within one.
  TokenTexts() {
    for (int i = 0; i < 900; ++i) {
      text_ += i % 7 == 0 ? " " : i % 3 == 0 ? "é" : "ü";
    }
    std::ofstream(folder_ / "text.txt", std::ios::binary) << text_;
    BpeTraining settings;
    settings.vocabulary = 280;
    BpeTrainer trainer(settings);
    trainer.add(text_);
    tokenizer_.emplace(trainer.train().tokenizer);
  }

  Text opened(double fraction) const {
    TextConfig config;
    config.files = {(folder_ / "text.txt").string()};
    config.validation_fraction = fraction;
    return Text(config);
  }

  TemporaryFolder folder_;
  std::string text_;
  std::optional<Tokenizer> tokenizer_;
};

std::string spelled(const Tokenizer& tokenizer, const TokenWindow& window, size_t from) {
  const TokenIds ids(window.begin() + static_cast<std::ptrdiff_t>(from), window.end());
  return tokenizer.decode_bytes(ids);
}

TEST_F(TokenTexts, HoldOutWholeCharactersAndPredictEachTokenOnce) {
  for (const double fraction : {0.1, 0.101, 0.2, 0.333}) {
    const TokenText tokens(opened(fraction), *tokenizer_);
    const auto windows = tokens.validation(8);
    std::string held_out;
    int64_t targets = 0;
    for (int64_t i = 0; i < windows->size(); ++i) {
      const TokenWindow window = windows->get(i);
      held_out += spelled(*tokenizer_, window, 1);
      targets += static_cast<int64_t>(window.size()) - 1;
    }
    EXPECT_TRUE(is_valid_utf8(held_out));
    EXPECT_TRUE(text_.ends_with(held_out));
    EXPECT_EQ(targets, tokens.validation_targets());
    EXPECT_EQ(static_cast<int64_t>(held_out.size()), tokens.validation_bytes());
    EXPECT_NEAR(static_cast<double>(held_out.size()), fraction * static_cast<double>(text_.size()),
                2);
  }
}

TEST_F(TokenTexts, TrainOnTheRestInWindows) {
  const TokenText tokens(opened(0.25), *tokenizer_);
  const auto windows = tokens.training(8, 1);
  for (int64_t i = 0; i < 2 * windows->size(); ++i) {
    const TokenWindow window = windows->get(i);
    EXPECT_EQ(window.size(), 9U);
    EXPECT_NE(text_.find(spelled(*tokenizer_, window, 0)), std::string::npos);
  }
  EXPECT_GE(windows->size() * 8, tokens.training_tokens() - 16);
  EXPECT_THROW(tokens.training(100'000, 1), Error);
}

}  // namespace
}  // namespace ingot::testing
