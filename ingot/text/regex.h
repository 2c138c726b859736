#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ingot {

// A regular expression of a tokenizer file, run by PCRE2 (UTF, Unicode properties, JIT). Such files
// are written for Oniguruma or Rust's fancy-regex; where PCRE2 spells something otherwise the
// pattern is translated: \s means White_Space, and [A&&[^B]] (characters of A but not of B) becomes
// a look-ahead. Classes nested otherwise are refused, for PCRE2 would read them as something else.
class Regex {
 public:
  // Throws Error(format) naming `subject`, the pattern, and what PCRE2 says and where.
  Regex(std::string pattern, const std::string& subject);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  const std::string& pattern() const { return pattern_; }

  // Calls found(begin, end) for each match in a valid UTF-8 text, in order; empty ones too. Throws
  // Error(format) where a match takes more steps than PCRE2 allows. May be called from several
  // threads at once.
  void for_each_match(std::string_view text,
                      const std::function<void(size_t begin, size_t end)>& found) const;

  // The text with every match replaced by `content`, literally.
  std::string replaced(std::string_view text, std::string_view content) const;

 private:
  struct Compiled;
  std::string pattern_;
  std::unique_ptr<Compiled> compiled_;
};

// A pattern that matches `text` and nothing else.
std::string regex_quoted(std::string_view text);

// The pattern in PCRE2's spelling, as described above.
std::string pcre2_pattern(std::string_view pattern, const std::string& subject);

}  // namespace ingot
