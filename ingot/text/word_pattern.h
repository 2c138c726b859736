#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ingot/text/unicode.h"

namespace ingot {

// The patterns by which byte-level tokenizers cut text into words, as settings of hand-written
// matchers instead of regular expressions. Three families:
//   gpt2   's|…| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   cl100k (?i:'s|…)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|…
//   o200k  as cl100k, with words cut before capitals: …?[\p{Lu}…]*[\p{Ll}…]+(?i:'s|…)?|…
struct WordPattern {
  enum class Family : uint8_t { gpt2, cl100k, o200k };

  Family family = Family::gpt2;
  int64_t digits = 0;  // most digits of a number (cl100k, o200k)
  bool contractions =
      true;              // 's, 't, 're, 've, 'm, 'll, 'd are cut off (o200k: belong to the word)
  bool slashes = false;  // a run of signs takes the '/' after its line ends (o200k)
};

// The settings of a pattern that is known by its spelling; nothing for any other.
std::optional<WordPattern> known_word_pattern(std::string_view regex);

inline constexpr std::string_view gpt2_regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Ends the first word of a text: every byte belongs to a word, as in regular expressions that match
// everywhere. `at` and `end` bound valid UTF-8 and at < end.
class WordCutter {
 public:
  explicit WordCutter(WordPattern pattern) : pattern_(pattern), classes_(char_classes().data()) {}

  const char* word_end(const char* at, const char* end) const;

 private:
  using At = const char*;
  At gpt2(At at, At end) const;
  At cl100k(At at, At end) const;
  At o200k(At at, At end) const;
  At cased_word(At at, At end) const;
  At after_signs(At at, At end) const;
  At run(At at, At end, uint8_t wanted) const;
  At signs(At at, At end) const;
  At spaces(At at, At end, bool lines) const;
  uint8_t class_at(At at) const;

  WordPattern pattern_;
  const uint8_t* classes_;
};

}  // namespace ingot
