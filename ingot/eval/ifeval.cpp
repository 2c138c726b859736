#include "ingot/eval/ifeval.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/regex.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using jinja::Mapping;
using jinja::Value;
using Texts = std::vector<std::string>;

// Every match of a Python pattern.
Texts matches_of(const std::string& pattern, std::string_view text) {
  const Regex regex(pattern, "ifeval");
  Texts out;
  regex.for_each_match(
      text, [&](size_t begin, size_t end) { out.emplace_back(text.substr(begin, end - begin)); });
  return out;
}

Texts split_by(const std::string& pattern, std::string_view text) {
  const Regex regex(pattern, "ifeval");
  Texts out;
  size_t at = 0;
  regex.for_each_match(text, [&](size_t begin, size_t end) {
    out.emplace_back(text.substr(at, begin - at));
    at = end;
  });
  out.emplace_back(text.substr(at));
  return out;
}

bool blank(std::string_view text) { return jinja::stripped(text).empty(); }

// What an instruction is told.
class Given {
 public:
  Given(std::string_view id, const Mapping& arguments) : id_(id), arguments_(arguments) {}

  int64_t number(const char* key) const {
    const Value& value = at(key);
    const double* real = value.as<double>();
    const auto integer = value.integer();
    check(real != nullptr || integer, ErrorKind::format, "ifeval: ", id_, ": ", key,
          " is no number");
    return real != nullptr ? static_cast<int64_t>(*real) : *integer;
  }
  std::string text(const char* key) const {
    const Value& value = at(key);
    check(value.text() != nullptr, ErrorKind::format, "ifeval: ", id_, ": ", key, " is no text");
    return *value.text();
  }
  Texts texts(const char* key) const {
    const Value& value = at(key);
    check(value.list() != nullptr, ErrorKind::format, "ifeval: ", id_, ": ", key, " is no list");
    Texts out;
    for (const Value& item : *value.list()) {
      check(item.text() != nullptr, ErrorKind::format, "ifeval: ", id_, ": ", key,
            " holds no texts");
      out.push_back(*item.text());
    }
    return out;
  }
  // "at least" or "less than" so many.
  bool compares(int64_t count, const char* relation, const char* limit) const {
    const std::string word = text(relation);
    check(word == "at least" || word == "less than", ErrorKind::format, "ifeval: ", id_, ": ",
          relation, " is neither 'at least' nor 'less than': ", word);
    return word == "at least" ? count >= number(limit) : count < number(limit);
  }

 private:
  const Value& at(const char* key) const {
    const Value* value = arguments_.find(key);
    check(value != nullptr && !value->is<jinja::None>(), ErrorKind::format, "ifeval: ", id_,
          ": no ", key, " is given");
    return *value;
  }

  std::string id_;
  const Mapping& arguments_;
};

using Check = bool (*)(const Given& given, std::string_view text);

int64_t size(const Texts& texts) { return static_cast<int64_t>(texts.size()); }

bool keywords_exist(const Given& given, std::string_view text) {
  const Texts words = given.texts("keywords");
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return !matches_of("(?i)" + regex_quoted(word), text).empty();
  });
}

bool no_forbidden_words(const Given& given, std::string_view text) {
  const Texts words = given.texts("forbidden_words");
  return std::none_of(words.begin(), words.end(), [&](const std::string& word) {
    return !matches_of("(?i)\\b" + regex_quoted(word) + "\\b", text).empty();
  });
}

bool keyword_frequency(const Given& given, std::string_view text) {
  const int64_t count = size(matches_of("(?i)" + regex_quoted(given.text("keyword")), text));
  return given.compares(count, "relation", "frequency");
}

bool letter_frequency(const Given& given, std::string_view text) {
  const std::string letter = jinja::lower(given.text("letter"));
  const int64_t count = jinja::count_of(jinja::lower(text), letter);
  return given.compares(count, "let_relation", "let_frequency");
}

bool number_words(const Given& given, std::string_view text) {
  return given.compares(size(matches_of("\\w+", text)), "relation", "num_words");
}

bool number_sentences(const Given& given, std::string_view text) {
  return given.compares(sentence_count(text), "relation", "num_sentences");
}

bool number_paragraphs(const Given& given, std::string_view text) {
  const Texts parts = split_by("\\s?\\*\\*\\*\\s?", text);
  int64_t count = size(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (blank(parts[i])) {
      if (i != 0 && i + 1 != parts.size()) {
        return false;
      }
      --count;
    }
  }
  return count == given.number("num_paragraphs");
}

bool nth_paragraph_first_word(const Given& given, std::string_view text) {
  const Texts parts = split_by("\\n\\n", text);
  int64_t count = size(parts);
  for (const std::string& part : parts) {
    count -= blank(part) ? 1 : 0;
  }
  const int64_t nth = given.number("nth_paragraph");
  if (nth < 1 || nth > count) {
    return false;
  }
  const std::string_view paragraph = jinja::stripped(parts[static_cast<size_t>(nth - 1)]);
  if (paragraph.empty()) {
    return false;
  }
  std::string_view word = jinja::split(paragraph, std::nullopt, -1).front();
  word = jinja::stripped(word, jinja::Side::left, "'");
  word = jinja::stripped(word, jinja::Side::left, "\"");
  word = word.substr(0, word.find_first_of(".,?!'\""));
  return count == given.number("num_paragraphs") &&
         jinja::lower(word) == jinja::lower(given.text("first_word"));
}

bool number_placeholders(const Given& given, std::string_view text) {
  return size(matches_of("\\[.*?\\]", text)) >= given.number("num_placeholders");
}

bool postscript(const Given& given, std::string_view text) {
  const std::string marker = given.text("postscript_marker");
  const std::string pattern = marker == "P.P.S" ? "(?m)\\s*p\\.\\s?p\\.\\s?s.*$"
                              : marker == "P.S."
                                  ? "(?m)\\s*p\\.\\s?s\\..*$"
                                  : "(?m)\\s*" + regex_quoted(jinja::lower(marker)) + ".*$";
  return !matches_of(pattern, jinja::lower(text)).empty();
}

bool number_bullet_lists(const Given& given, std::string_view text) {
  return size(matches_of("(?m)^\\s*\\*[^\\*].*$", text)) +
             size(matches_of("(?m)^\\s*-.*$", text)) ==
         given.number("num_bullets");
}

bool number_highlighted_sections(const Given& given, std::string_view text) {
  int64_t count = 0;
  for (const std::string& found : matches_of("\\*[^\\n\\*]*\\*", text)) {
    count += blank(jinja::stripped(found, jinja::Side::both, "*")) ? 0 : 1;
  }
  for (const std::string& found : matches_of("\\*\\*[^\\n\\*]*\\*\\*", text)) {
    count += blank(std::string_view(found).substr(2, found.size() - 4)) ? 0 : 1;
  }
  return count >= given.number("num_highlights");
}

bool multiple_sections(const Given& given, std::string_view text) {
  const std::string word = regex_quoted(given.text("section_spliter"));
  return size(split_by("\\s?" + word + "\\s?\\d+\\s?", text)) - 1 >= given.number("num_sections");
}

bool json_format(const Given&, std::string_view text) {
  std::string_view inner = jinja::stripped(text);
  for (const std::string_view fence : {"```json", "```Json", "```JSON", "```"}) {
    inner.remove_prefix(inner.starts_with(fence) ? fence.size() : 0);
  }
  inner.remove_suffix(inner.ends_with("```") ? 3 : 0);
  return nlohmann::json::accept(jinja::stripped(inner));
}

bool title(const Given&, std::string_view text) {
  const Texts found = matches_of("<<[^\\n]+>>", text);
  return std::any_of(found.begin(), found.end(), [](const std::string& one) {
    return !blank(
        jinja::stripped(jinja::stripped(one, jinja::Side::left, "<"), jinja::Side::right, ">"));
  });
}

bool constrained_response(const Given&, std::string_view text) {
  return text.find("My answer is yes.") != std::string_view::npos ||
         text.find("My answer is no.") != std::string_view::npos ||
         text.find("My answer is maybe.") != std::string_view::npos;
}

bool repeat_prompt(const Given& given, std::string_view text) {
  return jinja::lower(jinja::stripped(text))
      .starts_with(jinja::lower(jinja::stripped(given.text("prompt_to_repeat"))));
}

bool two_responses(const Given&, std::string_view text) {
  Texts said;
  const auto parts = jinja::split(text, "******", -1);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!blank(parts[i])) {
      said.emplace_back(jinja::stripped(parts[i]));
    } else if (i != 0 && i + 1 != parts.size()) {
      return false;
    }
  }
  return said.size() == 2 && said[0] != said[1];
}

bool english_capital(const Given&, std::string_view text) {
  return jinja::is_all(jinja::Class::upper, text) &&
         (language_of(text) == "en" || language_of(text).empty());
}

bool english_lowercase(const Given&, std::string_view text) {
  return jinja::is_all(jinja::Class::lower, text) &&
         (language_of(text) == "en" || language_of(text).empty());
}

bool capital_word_frequency(const Given& given, std::string_view text) {
  int64_t count = 0;
  for (const std::string& word : matches_of("[\\w.\\-]+|'\\w+", text)) {
    count += jinja::is_all(jinja::Class::upper, word) ? 1 : 0;
  }
  return given.compares(count, "capital_relation", "capital_frequency");
}

bool end_checker(const Given& given, std::string_view text) {
  const std::string_view said = jinja::stripped(jinja::stripped(text), jinja::Side::both, "\"");
  return jinja::lower(said).ends_with(jinja::lower(jinja::stripped(given.text("end_phrase"))));
}

bool quotation(const Given&, std::string_view text) {
  const std::string_view said = jinja::stripped(text);
  return said.size() > 1 && said.front() == '"' && said.back() == '"';
}

bool response_language(const Given& given, std::string_view text) {
  const std::string found = language_of(text);
  return found.empty() || found == given.text("language");
}

bool no_comma(const Given&, std::string_view text) {
  return text.find(',') == std::string_view::npos;
}

const std::map<std::string_view, Check>& checks() {
  static const std::map<std::string_view, Check> table = {
      {"keywords:existence", keywords_exist},
      {"keywords:frequency", keyword_frequency},
      {"keywords:forbidden_words", no_forbidden_words},
      {"keywords:letter_frequency", letter_frequency},
      {"language:response_language", response_language},
      {"length_constraints:number_sentences", number_sentences},
      {"length_constraints:number_paragraphs", number_paragraphs},
      {"length_constraints:number_words", number_words},
      {"length_constraints:nth_paragraph_first_word", nth_paragraph_first_word},
      {"detectable_content:number_placeholders", number_placeholders},
      {"detectable_content:postscript", postscript},
      {"detectable_format:number_bullet_lists", number_bullet_lists},
      {"detectable_format:constrained_response", constrained_response},
      {"detectable_format:number_highlighted_sections", number_highlighted_sections},
      {"detectable_format:multiple_sections", multiple_sections},
      {"detectable_format:json_format", json_format},
      {"detectable_format:title", title},
      {"combination:two_responses", two_responses},
      {"combination:repeat_prompt", repeat_prompt},
      {"startend:end_checker", end_checker},
      {"startend:quotation", quotation},
      {"change_case:capital_word_frequency", capital_word_frequency},
      {"change_case:english_capital", english_capital},
      {"change_case:english_lowercase", english_lowercase},
      {"punctuation:no_comma", no_comma},
  };
  return table;
}

// Without its first line, or without its last.
std::string_view without_first(std::string_view text) {
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? "" : jinja::stripped(text.substr(end + 1));
}
std::string_view without_last(std::string_view text) {
  const size_t begin = text.rfind('\n');
  return begin == std::string_view::npos ? "" : jinja::stripped(text.substr(0, begin));
}

}  // namespace

bool follows(std::string_view id, const jinja::Mapping& arguments, std::string_view response) {
  const auto found = checks().find(id);
  check(found != checks().end(), ErrorKind::format, "ifeval: there is no instruction '", id, "'");
  const std::string valid = with_replacements(response);
  return found->second(Given(id, arguments), valid);
}

bool follows_strictly(std::string_view id, const jinja::Mapping& arguments,
                      std::string_view response) {
  return !blank(response) && follows(id, arguments, response);
}

bool follows_loosely(std::string_view id, const jinja::Mapping& arguments,
                     std::string_view response) {
  const std::string_view first = without_first(response);
  for (const std::string_view cut :
       {response, first, without_last(response), without_last(first)}) {
    std::string plain(cut);
    std::erase(plain, '*');
    for (const std::string_view version : {cut, std::string_view(plain)}) {
      if (follows_strictly(id, arguments, version)) {
        return true;
      }
    }
  }
  return false;
}

std::vector<std::string> ifeval_kinds() {
  std::vector<std::string> out;
  for (const auto& [id, held] : checks()) {
    out.emplace_back(id);
  }
  return out;
}

}  // namespace ingot
