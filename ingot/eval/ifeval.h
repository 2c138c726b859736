#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/jinja_value.h"

namespace ingot {

// Instructions whose following can be verified by a program: the 25 kinds of Zhou et al. 2023,
// "Instruction-following evaluation for large language models" (arXiv:2311.07911), table 1. `id` is
// the paper's name ("length_constraints:number_words"), `arguments` its numbers and words as the
// data set gives them. Throws Error(format) for an unknown kind or a missing argument.
//
// Deviations: sentences and words are found by rules here, where the paper's code asks NLTK; the
// language of an answer is told by its script and frequent words, where it asks langdetect.
bool follows(std::string_view id, const jinja::Mapping& arguments, std::string_view response);

// Strict: the response as it is, which must say something. Loose: also without asterisks, without
// its first line, without its last, and in all these ways together; one that follows is enough.
bool follows_strictly(std::string_view id, const jinja::Mapping& arguments,
                      std::string_view response);
bool follows_loosely(std::string_view id, const jinja::Mapping& arguments,
                     std::string_view response);

std::vector<std::string> ifeval_kinds();

// How many sentences a text has: ended by . ! ? or a line break after a word, but not after a
// title, an initial, or within a number.
int64_t sentence_count(std::string_view text);
// ISO 639-1 code of the language a text is most likely in; "" where nothing tells.
std::string language_of(std::string_view text);

}  // namespace ingot
