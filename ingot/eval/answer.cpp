#include "ingot/eval/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ingot/base/error.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_number_part(char letter) { return is_digit(letter) || letter == '.' || letter == ','; }

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

}  // namespace

std::string gsm8k_strict(std::string_view text) {
  constexpr std::string_view mark = "#### ";
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    size_t end = begin + (begin < text.size() && text[begin] == '-' ? 1 : 0);
    const size_t digits = end;
    while (end < text.size() && is_number_part(text[end])) {
      ++end;
    }
    if (end > digits) {
      return std::string(text.substr(begin, end - begin));
    }
  }
  return std::string(invalid_answer);
}

std::string gsm8k_flexible(std::string_view text) {
  std::string_view last;
  for (size_t at = 0; at < text.size();) {
    const size_t sign = text[at] == '-' ? 1 : 0;
    // First the longer form, of two characters or more.
    size_t end = at + sign;
    while (end < text.size() && (is_number_part(text[end]) || text[end] == '$')) {
      ++end;
    }
    if (end - at - sign < 2) {
      end = at + sign;
      while (end < text.size() && is_digit(text[end])) {
        ++end;
      }
    }
    if (end > at + sign) {
      last = text.substr(at, end - at);
      at = end;
    } else {
      ++at;
    }
  }
  return std::string(last.empty() ? invalid_answer : last);
}

std::optional<std::string> boxed(std::string_view text) {
  constexpr std::string_view mark = "\\boxed{";
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t begin = at + mark.size();
  int depth = 1;
  for (size_t i = begin; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) {
      return std::string(text.substr(begin, i - begin));
    }
  }
  return std::nullopt;
}

std::string option_letter(std::string_view text, char last) {
  const auto is_word = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || is_digit(letter);
  };
  for (size_t i = text.size(); i > 0; --i) {
    const char letter = text[i - 1];
    const bool alone = (i == 1 || !is_word(text[i - 2])) && (i == text.size() || !is_word(text[i]));
    // An article is no answer: "A dog" counts only in brackets or at the end of a sentence.
    const bool article = letter == 'A' && i < text.size() && text[i] == ' ';
    if (letter >= 'A' && letter <= last && alone && !article) {
      return std::string(1, letter);
    }
  }
  return std::string(invalid_answer);
}

std::string gsm8k_normalized(std::string_view text) {
  if (const size_t mark = text.rfind("#### "); mark != std::string_view::npos) {
    text.remove_prefix(mark + 5);
  }
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char letter) { return letter != ',' && letter != '$'; });
  if (out.ends_with('.')) {
    out.pop_back();
  }
  return out;
}

std::string trivia_normalized(std::string_view text) {
  std::string plain;
  for (const char letter : jinja::lower(text)) {
    const auto byte = static_cast<unsigned char>(letter);
    plain += byte < 0x80 && std::ispunct(byte) != 0 ? ' ' : letter;
  }
  std::string out;
  for (const std::string_view word : jinja::split(plain, std::nullopt, -1)) {
    if (word != "a" && word != "an" && word != "the") {
      out += out.empty() ? "" : " ";
      out += word;
    }
  }
  return out;
}

std::string extracted(std::string_view rule, std::string_view text) {
  if (rule == "none") {
    return std::string(jinja::stripped(text));
  }
  if (rule == "strict") {
    return gsm8k_strict(text);
  }
  if (rule == "flexible" || rule == "number") {
    return gsm8k_flexible(text);
  }
  if (rule == "boxed") {
    return boxed(text).value_or(std::string(invalid_answer));
  }
  if (rule == "letter") {
    return option_letter(text, 'Z');
  }
  check(rule == "first_line", ErrorKind::config, "extract: there is no rule '", rule,
        "'; it is none, strict, flexible, boxed, letter, first_line or number");
  const std::string_view all = jinja::stripped(text);
  return std::string(jinja::stripped(all.substr(0, all.find('\n'))));
}

std::string normalized(std::string_view rule, std::string_view text) {
  if (rule == "none") {
    return std::string(jinja::stripped(text));
  }
  if (rule == "gsm8k") {
    return gsm8k_normalized(text);
  }
  if (rule == "trivia") {
    return trivia_normalized(text);
  }
  if (rule == "number") {
    const std::string plain = gsm8k_normalized(text);
    const auto value = number_of(plain);
    return value ? fmt::format("{}", *value) : plain;
  }
  check(rule == "lower", ErrorKind::config, "normalize: there is no rule '", rule,
        "'; it is none, gsm8k, number, trivia or lower");
  return jinja::lower(jinja::stripped(text));
}

}  // namespace ingot
