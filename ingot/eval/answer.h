#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ingot {

// How an answer is found in what a model wrote. The rules of GSM8K are those of
// lm-evaluation-harness (tasks/gsm8k/gsm8k.yaml).

inline constexpr std::string_view invalid_answer = "[invalid]";

// The first match of `#### (-?[0-9.,]+)`, or invalid_answer.
std::string gsm8k_strict(std::string_view text);
// The last match of `(-?[$0-9.,]{2,})|(-?[0-9]+)`, or invalid_answer.
std::string gsm8k_flexible(std::string_view text);
// What the last \boxed{…} holds, braces in balance; nothing where there is none.
std::optional<std::string> boxed(std::string_view text);
// The last option letter: "(B)", "B)" or a B alone, A to Z up to `last`; or invalid_answer.
std::string option_letter(std::string_view text, char last);

// Before comparing: without commas, dollar signs, everything up to "#### ", and one trailing stop.
std::string gsm8k_normalized(std::string_view text);
// As TriviaQA compares (Joshi et al. 2017): lower case, without punctuation and articles, white
// space single.
std::string trivia_normalized(std::string_view text);

// What a task's `extract` names: none, strict, flexible, boxed, letter, first_line, number. Throws
// Error(config).
std::string extracted(std::string_view rule, std::string_view text);
// What a task's `normalize` names: none, gsm8k, number (by value: 51.0 is 51), trivia, lower.
// Throws Error(config).
std::string normalized(std::string_view rule, std::string_view text);

}  // namespace ingot
