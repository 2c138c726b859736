#include "ingot/text/word_pattern.h"

#include <array>

#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using At = const char*;

struct Known {
  std::string_view regex;
  WordPattern pattern;
};

using Family = WordPattern::Family;

constexpr std::array known = {
    Known{gpt2_regex, {Family::gpt2}},
    Known{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
          {Family::gpt2}},
    // GPT-4 (cl100k_base) and Llama 3
    Known{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        {Family::cl100k, 3}},
    // Qwen 2 and 3
    Known{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        {Family::cl100k, 1}},
    // GPT-4o (o200k_base)
    Known{
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        {Family::o200k, 3, true, true}},
    // Mistral's Tekken
    Known{
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        {Family::o200k, 1, false, true}},
};

// The end of 's, 't, 're, 've, 'm, 'll or 'd, which starts at `at`; `at` where there is none.
// Without regard to case, 's' is also the long s, U+017F.
template <bool AnyCase>
At contraction_end(At at, At end) {
  if (at == end || *at != '\'' || end - at < 2) {
    return at;
  }
  const auto folded = [](char c) { return AnyCase && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; };
  switch (folded(at[1])) {
    case 's':
    case 't':
    case 'm':
    case 'd': return at + 2;
    case 'r':
    case 'v': return end - at > 2 && folded(at[2]) == 'e' ? at + 3 : at;
    case 'l': return end - at > 2 && folded(at[2]) == 'l' ? at + 3 : at;
    case '\xC5': return AnyCase && end - at > 2 && at[2] == '\xBF' ? at + 3 : at;
    default: return at;
  }
}

uint32_t bytes_at(At at) { return utf8_char(at).bytes; }

bool is_newline(char c) { return c == '\r' || c == '\n'; }

}  // namespace

std::optional<WordPattern> known_word_pattern(std::string_view regex) {
  for (const Known& one : known) {
    if (one.regex == regex) {
      return one.pattern;
    }
  }
  return std::nullopt;
}

inline uint8_t WordCutter::class_at(At at) const {
  const auto byte = static_cast<uint8_t>(*at);
  return byte < 0x80 ? classes_[byte] : classes_[utf8_char(at).code];
}

// The end of the run of characters with a flag of `wanted`.
inline At WordCutter::run(At at, At end, uint8_t wanted) const {
  while (at < end) {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) {
      if ((classes_[byte] & wanted) == 0) {
        return at;
      }
      ++at;
    } else {
      const Utf8Char c = utf8_char(at);
      if ((classes_[c.code] & wanted) == 0) {
        return at;
      }
      at += c.bytes;
    }
  }
  return at;
}

// The end of [^\s\p{L}\p{N}]*.
inline At WordCutter::signs(At at, At end) const {
  constexpr uint8_t others = CharClass::letter | CharClass::number | CharClass::space;
  while (at < end) {
    const Utf8Char c = utf8_char(at);
    if ((classes_[c.code] & others) != 0) {
      return at;
    }
    at += c.bytes;
  }
  return at;
}

// \s*[\r\n]+ (with `lines`), \s+(?!\S), \s+ in this order, at white space.
At WordCutter::spaces(At at, At end, bool lines) const {
  At last = at;        // where the last character of the run begins
  At after_line = at;  // behind the last line end in the run
  At stop = at;
  while (stop < end && (class_at(stop) & CharClass::space) != 0) {
    last = stop;
    stop += bytes_at(stop);
    after_line = is_newline(*last) ? stop : after_line;
  }
  if (lines && after_line > at) {
    return after_line;
  }
  return stop == end || last == at ? stop : last;
}

//  ?[^\s\p{L}\p{N}]+[\r\n]* or white space.
inline At WordCutter::after_signs(At at, At end) const {
  const At first = *at == ' ' ? at + 1 : at;
  At stop = signs(first, end);
  if (stop == first) {
    return spaces(at, end, true);
  }
  while (stop < end && (is_newline(*stop) || (pattern_.slashes && *stop == '/'))) {
    ++stop;
  }
  return stop;
}

At WordCutter::gpt2(At at, At end) const {
  if (const At stop = contraction_end<false>(at, end); stop != at) {
    return stop;
  }
  const At first = *at == ' ' && at + 1 < end ? at + 1 : at;
  const uint8_t flags = class_at(first);
  if ((flags & CharClass::letter) != 0) {
    return run(first, end, CharClass::letter);
  }
  if ((flags & CharClass::number) != 0) {
    return run(first, end, CharClass::number);
  }
  if ((flags & CharClass::space) == 0) {
    return signs(first, end);
  }
  return spaces(at, end, false);
}

At WordCutter::cl100k(At at, At end) const {
  if (pattern_.contractions) {
    if (const At stop = contraction_end<true>(at, end); stop != at) {
      return stop;
    }
  }
  const uint8_t flags = class_at(at);
  if ((flags & CharClass::letter) != 0) {
    return run(at, end, CharClass::letter);
  }
  if ((flags & CharClass::number) != 0) {
    At stop = at;
    for (int64_t i = 0;
         i < pattern_.digits && stop < end && (class_at(stop) & CharClass::number) != 0; ++i) {
      stop += bytes_at(stop);
    }
    return stop;
  }
  if ((flags & CharClass::newline) == 0) {
    const At first = at + bytes_at(at);
    if (first < end && (class_at(first) & CharClass::letter) != 0) {
      return run(first, end, CharClass::letter);
    }
  }
  return after_signs(at, end);
}

// The end of a word of o200k's first two alternatives; `at` where neither matches. A word is
// capitals and then small letters, both of which letters without case and marks may be. Greedy
// matching gives the first alternative back as many capitals as it needs to end in a small letter.
At WordCutter::cased_word(At at, At end) const {
  const auto lower_end = [&](At from) -> At {
    const At capitals = run(from, end, CharClass::upper);
    if (capitals < end && (class_at(capitals) & CharClass::lower) != 0) {
      return run(capitals, end, CharClass::lower);
    }
    for (At stop = capitals; stop > from;) {
      At before = stop - 1;
      while ((static_cast<uint8_t>(*before) & 0xC0) == 0x80) {
        --before;
      }
      if ((class_at(before) & CharClass::lower) != 0) {
        return stop;
      }
      stop = before;
    }
    return from;
  };
  constexpr uint8_t no_prefix = CharClass::letter | CharClass::number | CharClass::newline;
  const At behind = (class_at(at) & no_prefix) == 0 ? at + bytes_at(at) : at;
  if (const At stop = lower_end(behind); stop != behind) {
    return stop;
  }
  if (const At stop = behind == at ? at : lower_end(at); stop != at) {
    return stop;
  }
  if (const At stop = run(behind, end, CharClass::upper); stop != behind) {
    return stop;
  }
  return behind == at ? at : run(at, end, CharClass::upper);
}

At WordCutter::o200k(At at, At end) const {
  if (const At stop = cased_word(at, end); stop != at) {
    return pattern_.contractions ? contraction_end<true>(stop, end) : stop;
  }
  return cl100k(at, end);
}

const char* WordCutter::word_end(const char* at, const char* end) const {
  switch (pattern_.family) {
    case Family::gpt2: return gpt2(at, end);
    case Family::cl100k: return cl100k(at, end);
    case Family::o200k: return o200k(at, end);
  }
  return end;
}

}  // namespace ingot
