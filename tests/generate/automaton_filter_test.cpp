#include "ingot/generate/automaton_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "ingot/generate/scheduler.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// Of the tiny models' 40 tokens: letters, digits, some pairs, and two without bytes.
std::vector<std::string> bytes_of_tokens() {
  std::vector<std::string> out;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    out.emplace_back(1, letter);
  }
  for (char digit = '0'; digit <= '9'; ++digit) {
    out.emplace_back(1, digit);
  }
  out.insert(out.end(), {"12", "ab", "", ""});
  return out;
}

constexpr int64_t stop = 39;

AutomatonFilter filter_of(const std::string& pattern, std::vector<int64_t> stops = {stop}) {
  return {ByteAutomaton(pattern, "test"), bytes_of_tokens(), std::move(stops)};
}

std::vector<int64_t> allowed_by(const TokenFilter& filter) {
  std::vector<float> logits(40, 1);
  filter.apply(logits);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < 40; ++i) {
    if (logits[static_cast<size_t>(i)] > 0) {
      out.push_back(i);
    }
  }
  return out;
}

TEST(AutomatonFilter, AllowsTokensThatLeadOnAndTheStopWhereItMatches) {
  AutomatonFilter filter = filter_of("ab(1|12)?");
  EXPECT_EQ(allowed_by(filter), (std::vector<int64_t>{0, 37}));  // a, ab
  const auto other = filter.copy();
  filter.accept(37);
  EXPECT_EQ(allowed_by(filter), (std::vector<int64_t>{27, 36, stop}));  // 1, 12
  filter.accept(27);
  EXPECT_EQ(allowed_by(filter), (std::vector<int64_t>{28, stop}));
  EXPECT_FALSE(filter.complete());
  filter.accept(28);
  EXPECT_TRUE(filter.complete());
  EXPECT_EQ(allowed_by(*other), (std::vector<int64_t>{0, 37}));
  AutomatonFilter ended = filter_of("a*");
  ended.accept(stop);
  EXPECT_TRUE(ended.complete());
}

TEST(AutomatonFilter, MakesEveryTextMatch) {
  const auto model = random_model(tiny_config());
  const std::string pattern = "(ab|c[0-9]{2}x)+z[a-f]?";
  const AutomatonFilter filter = filter_of(pattern);
  const std::vector<std::string> bytes = bytes_of_tokens();
  Scheduler scheduler(*model, room_for(8, 48));
  int64_t ended = 0;
  for (int64_t seed = 0; seed < 40; ++seed) {
    Request request;
    request.prompt = {1};
    request.config.max_tokens = 40;
    request.config.seed = seed;
    request.config.stop_tokens = {stop};
    request.filter = filter.copy();
    request.on_end = [&](const Answer& answer) {
      ASSERT_FALSE(answer.failure);
      std::string text;
      for (const int64_t token : answer.tokens) {
        text += bytes[static_cast<size_t>(token)];
      }
      if (answer.finish == Finish::stop) {
        ++ended;
        EXPECT_TRUE(std::regex_match(text, std::regex(pattern))) << text;
      }
    };
    scheduler.add(std::move(request));
  }
  while (scheduler.step()) {
  }
  EXPECT_GT(ended, 20);
}

TEST(AutomatonFilter, SaysWhereNoTokenGoesOn) {
  const AutomatonFilter filter = filter_of("ä");
  std::vector<float> logits(40, 1);
  expect_error([&] { filter.apply(logits); }, "no token of the vocabulary goes on");
  std::vector<float> more(41, 1);
  expect_error([&] { filter.apply(more); },
               "the vocabulary has 40 tokens with bytes, the model 41");
}

}  // namespace
}  // namespace ingot::testing
