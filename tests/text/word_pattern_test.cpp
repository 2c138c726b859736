#include "ingot/text/word_pattern.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unicode/uchar.h>

#include "ingot/base/error.h"
#include "ingot/text/regex.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/utf8.h"

namespace ingot::testing {
namespace {

using Words = std::vector<std::string>;

Words by_regex(const Regex& regex, std::string_view text) {
  Words out;
  regex.for_each_match(
      text, [&](size_t begin, size_t end) { out.emplace_back(text.substr(begin, end - begin)); });
  return out;
}

Words by_cutter(const WordCutter& cutter, std::string_view text) {
  Words out;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const stop = cutter.word_end(at, end);
    out.emplace_back(at, stop);
    at = stop;
  }
  return out;
}

// Characters that the patterns tell apart, often, and any other, sometimes: of those that both
// libraries know, for PCRE2's Unicode is older than ICU's.
char32_t some_char() {
  static constexpr std::u32string_view telling =
      U"aZsStTrReEvVmMlLdD''' \t\r\n\n  "
      U"019.!/-éÉǅʰ中の한ªº\u0301\u0e31\u00a0\u2003\u3000\u0085½٣𝟘ſK😀";
  if (*rc::gen::inRange(0, 10) < 8) {
    return telling[*rc::gen::inRange<size_t>(0, telling.size())];
  }
  const auto code = static_cast<char32_t>(*rc::gen::inRange(0, 0x110000));
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code), age);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return surrogate || age[0] == 0 || age[0] > 13 ? U'x' : code;
}

std::string some_text() {
  std::string out;
  const int length = *rc::gen::inRange(0, 40);
  for (int i = 0; i < length; ++i) {
    append_utf8(out, some_char());
  }
  return out;
}

void expect_equal_on_random_texts(const std::string& pattern) {
  const auto known = known_word_pattern(pattern);
  ASSERT_TRUE(known.has_value()) << pattern;
  const WordCutter cutter(*known);
  const Regex regex(pattern, "test");
  EXPECT_TRUE(rc::check("the matcher and PCRE2 cut alike", [&] {
    for (int i = 0; i < 20; ++i) {
      const std::string text = some_text();
      RC_ASSERT(by_cutter(cutter, text) == by_regex(regex, text));
    }
  }));
}

TEST(WordCutter, CutsAsPcre2DoesByGpt2sPattern) {
  expect_equal_on_random_texts(std::string(gpt2_regex));
}

TEST(WordCutter, CutsAsPcre2DoesByCl100k) {
  expect_equal_on_random_texts(tiktoken_encoding("cl100k_base")->pattern);
}

TEST(WordCutter, CutsAsPcre2DoesByO200k) {
  expect_equal_on_random_texts(tiktoken_encoding("o200k_base")->pattern);
}

TEST(WordCutter, CutsAsPcre2DoesByQwen2AndTekken) {
  expect_equal_on_random_texts(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  expect_equal_on_random_texts(
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

TEST(Regex, ReadsWhatOtherLibrariesSpellOtherwise) {
  // Mongolian vowel separator is white space to PCRE2's \s, but not to Unicode.
  EXPECT_EQ(by_regex(Regex(R"(\s+)", "t"), "a \u3000\u180E b"), (Words{" \u3000", " "}));
  EXPECT_EQ(by_regex(Regex(R"([\p{L}&&[^\p{Han}]]+)", "t"), "ab中cd"), (Words{"ab", "cd"}));
  EXPECT_EQ(pcre2_pattern(R"([^\s\]]\\s)", "t"), R"([^\p{White_Space}\]]\\s)");
}

TEST(Regex, RefusesWhatItCannotReadByName) {
  const auto message = [](const char* pattern) -> std::string {
    try {
      Regex(pattern, "tokenizer.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("(a").find("tokenizer.json: PCRE2 refuses the pattern (a: missing closing"),
            std::string::npos);
  EXPECT_NE(message("[a[b]]").find("nests character classes at character 2"), std::string::npos);
  EXPECT_NE(message("[ab").find("without its end at character 0"), std::string::npos);
}

TEST(Regex, SaysSoWhereAMatchTakesForever) {
  const Regex regex("(a+)+$", "tokenizer.json");
  EXPECT_THROW(by_regex(regex, std::string(100, 'a') + "b"), Error);
}

}  // namespace
}  // namespace ingot::testing
