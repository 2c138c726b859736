#include "ingot/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "ingot/base/error.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(code, buffer, sizeof(buffer));
  return length < 0 ? "unknown error" : reinterpret_cast<const char*>(buffer);
}

// Reads a pattern and writes it in PCRE2's spelling.
class Translator {
 public:
  Translator(std::string_view pattern, const std::string& subject)
      : pattern_(pattern), subject_(subject) {}

  std::string translated() {
    std::string out;
    while (at_ < pattern_.size()) {
      out += pattern_[at_] == '[' ? character_class() : single();
    }
    return out;
  }

 private:
  // One character or escape.
  std::string single() {
    if (pattern_[at_] != '\\' || at_ + 1 == pattern_.size()) {
      return std::string(1, pattern_[at_++]);
    }
    const char letter = pattern_[at_ + 1];
    at_ += 2;
    switch (letter) {
      case 's': return "\\p{White_Space}";
      case 'S': return "\\P{White_Space}";
      case 'h': return "[0-9A-Fa-f]";  // a hexadecimal digit to Oniguruma
      default: return {'\\', letter};
    }
  }

  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  // "[…]", with look-aheads before it for its intersections.
  std::string character_class() {
    const size_t begin = at_++;
    std::string own = "[";
    std::string conditions;
    if (next_is("^")) {
      own += pattern_[at_++];
    }
    if (next_is("]")) {
      own += "\\]";
      ++at_;
    }
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (next_is("[:")) {
        const size_t end = pattern_.find(":]", at_);
        check(end != std::string_view::npos, ErrorKind::format, subject_, ": the pattern ",
              pattern_, " has a class [: without its end at character ", at_);
        own += pattern_.substr(at_, end + 2 - at_);
        at_ = end + 2;
      } else if (next_is("&&[")) {
        at_ += 2;
        conditions += "(?=" + character_class() + ")";
      } else {
        check(pattern_[at_] != '[' && !next_is("&&") && !next_is("--"), ErrorKind::format, subject_,
              ": the pattern ", pattern_, " nests character classes at character ", at_,
              " in a way that PCRE2 would read otherwise; only [A&&[B]] is known");
        own += single();
      }
    }
    check(at_ < pattern_.size(), ErrorKind::format, subject_, ": the pattern ", pattern_,
          " has a character class without its end at character ", begin);
    ++at_;
    own += ']';
    return conditions.empty() ? own : "(?:" + conditions + own + ")";
  }

  std::string_view pattern_;
  const std::string& subject_;
  size_t at_ = 0;
};

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  std::string subject;
  ~Compiled() { pcre2_code_free(code); }
};

std::string pcre2_pattern(std::string_view pattern, const std::string& subject) {
  return Translator(pattern, subject).translated();
}

Regex::Regex(std::string pattern, const std::string& subject)
    : pattern_(std::move(pattern)), compiled_(std::make_unique<Compiled>()) {
  const std::string translated = pcre2_pattern(pattern_, subject);
  int error = 0;
  PCRE2_SIZE where = 0;
  compiled_->subject = subject;
  compiled_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &where, nullptr);
  check(compiled_->code != nullptr, ErrorKind::format, subject, ": PCRE2 refuses the pattern ",
        translated, ": ", message_of(error), " at character ", where);
  pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE);  // where there is no JIT, it interprets
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::for_each_match(std::string_view text,
                           const std::function<void(size_t, size_t)>& found) const {
  const MatchData data(pcre2_match_data_create_from_pattern(compiled_->code, nullptr),
                       pcre2_match_data_free);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t at = 0;
  while (at <= text.size()) {
    const int code = pcre2_match(compiled_->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                 data.get(), nullptr);
    if (code == PCRE2_ERROR_NOMATCH) {
      return;
    }
    check(code >= 0, ErrorKind::format, compiled_->subject, ": the pattern ", pattern_,
          " cannot be matched at byte ", at, " of ", text.size(), ": ", message_of(code));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    found(ends[0], ends[1]);
    at = ends[1];
    if (ends[1] <= ends[0]) {  // an empty match: go on behind the next character
      at += at < text.size() ? utf8_char(text.data() + at).bytes : 1;
    }
  }
}

std::string Regex::replaced(std::string_view text, std::string_view content) const {
  std::string out;
  size_t copied = 0;
  for_each_match(text, [&](size_t begin, size_t end) {
    out += text.substr(copied, begin - copied);
    out += content;
    copied = end;
  });
  out += text.substr(copied);
  return out;
}

std::string regex_quoted(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const bool plain = (static_cast<uint8_t>(letter) & 0x80) != 0 || letter == ' ' ||
                       (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= 'a' && letter <= 'z');
    if (letter == '\0') {
      out += "\\x00";
      continue;
    }
    out += plain ? std::string(1, letter) : std::string{'\\', letter};
  }
  return out;
}

}  // namespace ingot
