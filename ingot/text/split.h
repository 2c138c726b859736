#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ingot/text/pre_tokenizer.h"
#include "ingot/text/regex.h"

namespace ingot {

// What becomes of the matches of a pattern that cuts words (Hugging Face, SplitDelimiterBehavior):
// with the pattern "-", "a--b" is cut into
enum class SplitBehavior : uint8_t {
  removed,               // a b
  isolated,              // a - - b
  merged_with_previous,  // a- - b
  merged_with_next,      // a - -b
  contiguous,            // a -- b
};

// By its name in tokenizer.json. Throws Error(format) naming `subject` and the unknown one.
SplitBehavior split_behavior(const std::string& name, const std::string& subject);

// Cuts every word at the matches; inverted, at what lies between them.
void split(Pieces& pieces, const Regex& regex, SplitBehavior behavior, bool inverted);
// The same where every character that `is_match` is a match.
void split(Pieces& pieces, const std::function<bool(char32_t)>& is_match, SplitBehavior behavior);

// Into runs of \w and runs of [^\w\s]; white space is dropped.
void split_words_and_signs(Pieces& pieces);

}  // namespace ingot
