#include "ingot/text/pre_tokenizer.h"

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/component.h"
#include "ingot/text/split.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

// Changes every word by itself. `each` appends the new word, or words, to the new pieces.
template <class Each>
void rewrite(Pieces& pieces, const Each& each) {
  Pieces out;
  out.text.reserve(pieces.text.size());
  pieces.for_each([&](std::string_view word) {
    each(out, word);
    if (out.text.size() > (out.ends.empty() ? 0 : out.ends.back())) {
      out.ends.push_back(out.text.size());
    }
  });
  pieces = std::move(out);
}

void write_symbols(Pieces& pieces, bool) {
  rewrite(pieces, [](Pieces& out, std::string_view word) {
    for (const char byte : word) {
      append_utf8(out.text, byte_symbol(static_cast<uint8_t>(byte)));
    }
  });
}

void prefix_spaces(Pieces& pieces, bool) {
  rewrite(pieces, [](Pieces& out, std::string_view word) {
    out.text += word.front() == ' ' ? "" : " ";
    out.text += word;
  });
}

void cut_by_pattern(Pieces& pieces, const WordCutter& cutter) {
  std::vector<size_t> ends;
  pieces.for_each([&](std::string_view word) {
    const char* const end = word.data() + word.size();
    for (const char* at = word.data(); at < end;) {
      at = cutter.word_end(at, end);
      ends.push_back(static_cast<size_t>(at - pieces.text.data()));
    }
  });
  pieces.ends = std::move(ends);
}

// Hugging Face, pre_tokenizers/unicode_scripts: words end where the script changes; what stands
// before the first character of a script is dropped.
void cut_by_script(Pieces& pieces, bool) {
  constexpr int32_t any = -1;
  const auto script = [](char32_t c) {
    return c == ' ' ? any : c == 0x30FC || is_kana(c) ? han_script() : script_of(c);
  };
  rewrite(pieces, [&](Pieces& out, std::string_view word) {
    int32_t last = any - 1;
    for (size_t at = 0; at < word.size();) {
      const Utf8Char c = utf8_char(word.data() + at);
      const int32_t now = script(c.code);
      const bool begins = now != any && last != now;
      if (begins && last != any - 1 && out.text.size() > (out.ends.empty() ? 0 : out.ends.back())) {
        out.ends.push_back(out.text.size());
      }
      last = now == any ? last : now;
      if (last != any - 1) {
        out.text += word.substr(at, c.bytes);
      }
      at += c.bytes;
    }
  });
}

void cut_to_length(Pieces& pieces, int64_t length) {
  rewrite(pieces, [&](Pieces& out, std::string_view word) {
    int64_t characters = 0;
    for (size_t at = 0; at < word.size();) {
      const size_t bytes = utf8_char(word.data() + at).bytes;
      if (characters++ == length) {
        out.ends.push_back(out.text.size());
        characters = 1;
      }
      out.text += word.substr(at, bytes);
      at += bytes;
    }
  });
}

enum class Prepend : uint8_t { always, first, never };

// `c` in the place of spaces and, as told, in front of words; then cut before every `c`.
void write_metaspace(Pieces& pieces, bool first, const std::string& c, Prepend prepend,
                     bool splits) {
  bool is_first = first;
  rewrite(pieces, [&](Pieces& out, std::string_view word) {
    std::string written;
    for (const char byte : word) {
      written += byte == ' ' ? c : std::string(1, byte);
    }
    const bool wanted = prepend == Prepend::always || (prepend == Prepend::first && is_first);
    if (wanted && !written.starts_with(c)) {
      written = c + written;
    }
    is_first = false;
    const size_t begin = out.text.size();
    out.text += written;
    for (size_t at = splits ? written.find(c, 1) : std::string::npos; at != std::string::npos;
         at = written.find(c, at + c.size())) {
      out.ends.push_back(begin + at);
    }
  });
}

}  // namespace

PreTokenizer::PreTokenizer(const std::string& json, const std::string& subject) {
  const Json component = parse_json(json, subject);
  if (!component.is_null()) {
    add(component, subject, 0);
  }
  ends_in_bytes_ = byte_levels_.size() == 1 && byte_levels_.front() + 1 == steps_.size();
  if (!ends_in_bytes_ || steps_.size() != 2) {
    cutter_.reset();
  }
}

void PreTokenizer::add_cutter(const WordPattern& pattern) {
  cutter_.emplace(pattern);
  steps_.push_back([cutter = *cutter_](Pieces& pieces, bool) { cut_by_pattern(pieces, cutter); });
}

void PreTokenizer::add_byte_level(const Json& component, const std::string& subject) {
  if (json_field_or<bool>(component, "add_prefix_space", true, subject)) {
    steps_.push_back(prefix_spaces);
  }
  if (json_field_or<bool>(component, "use_regex", true, subject)) {
    add_cutter({});
  }
  byte_levels_.push_back(steps_.size());
  steps_.push_back(write_symbols);
}

void PreTokenizer::add_split(const Json& component, const std::string& subject) {
  const SplitBehavior behavior =
      split_behavior(json_field<std::string>(component, "behavior", subject), subject);
  const bool inverted = json_field_or<bool>(component, "invert", false, subject);
  const auto& pattern = component.contains("pattern") ? component["pattern"] : component;
  if (behavior == SplitBehavior::isolated && pattern.is_object() && pattern.contains("Regex")) {
    const auto known = known_word_pattern(json_field<std::string>(pattern, "Regex", subject));
    if (known) {  // matches everywhere, so that inverting changes nothing either
      add_cutter(*known);
      return;
    }
  }
  steps_.push_back([regex = component_pattern(component, subject), behavior, inverted](
                       Pieces& pieces, bool) { split(pieces, *regex, behavior, inverted); });
}

void PreTokenizer::add_metaspace(const Json& component, const std::string& subject) {
  const auto c = json_field_or<std::string>(component, "replacement", "▁", subject);
  check(utf8_length(c) == 1, ErrorKind::format, subject, ": 'replacement' must be one character: '",
        c, "'");
  const bool legacy = json_field_or<bool>(component, "add_prefix_space", true, subject);
  const auto scheme =
      json_field_or<std::string>(component, "prepend_scheme", legacy ? "always" : "never", subject);
  check(scheme == "always" || scheme == "first" || scheme == "never", ErrorKind::format, subject,
        ": unknown prepend_scheme '", scheme, "'; it is always, first or never");
  const Prepend prepend = scheme == "always"  ? Prepend::always
                          : scheme == "first" ? Prepend::first
                                              : Prepend::never;
  const bool splits = json_field_or<bool>(component, "split", true, subject);
  steps_.push_back(
      [=](Pieces& pieces, bool first) { write_metaspace(pieces, first, c, prepend, splits); });
}

void PreTokenizer::add(const Json& component, const std::string& subject, int depth) {
  const std::string type = component_type(component, subject, depth);
  const std::string at = subject + "." + type;
  const auto cut = [&](auto is_match, SplitBehavior behavior) {
    steps_.push_back([=](Pieces& pieces, bool) { split(pieces, is_match, behavior); });
  };
  if (type == "Sequence") {
    for (const Json& part : component_list(component, "pretokenizers", at)) {
      add(part, at, depth + 1);
    }
  } else if (type == "ByteLevel") {
    add_byte_level(component, at);
  } else if (type == "Split") {
    add_split(component, at);
  } else if (type == "Metaspace") {
    add_metaspace(component, at);
  } else if (type == "Digits") {
    cut(is_numeric, json_field_or<bool>(component, "individual_digits", false, at)
                        ? SplitBehavior::isolated
                        : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    cut(is_punctuation,
        split_behavior(json_field_or<std::string>(component, "behavior", "Isolated", at), at));
  } else if (type == "Whitespace") {
    steps_.push_back([](Pieces& pieces, bool) { split_words_and_signs(pieces); });
  } else if (type == "WhitespaceSplit") {
    cut(is_space, SplitBehavior::removed);
  } else if (type == "BertPreTokenizer") {
    cut(is_space, SplitBehavior::removed);
    cut(is_punctuation, SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    const auto mark = json_field<std::string>(component, "delimiter", at);
    check(utf8_length(mark) == 1, ErrorKind::format, at, ": 'delimiter' must be one character: '",
          mark, "'");
    cut([code = utf8_char(mark.data()).code](char32_t c) { return c == code; },
        SplitBehavior::removed);
  } else if (type == "UnicodeScripts") {
    steps_.push_back(cut_by_script);
  } else if (type == "FixedLength") {
    const auto length = json_field_or<int64_t>(component, "length", 5, at);
    check(length >= 1, ErrorKind::format, at, ": 'length' must be at least 1: ", length);
    steps_.push_back([length](Pieces& pieces, bool) { cut_to_length(pieces, length); });
  } else {
    unknown_component(subject, "pre-tokenizer", type);
  }
}

void PreTokenizer::apply(Pieces& pieces, bool first, bool bytes) const {
  for (size_t i = 0; i + (bytes ? 1 : 0) < steps_.size(); ++i) {
    steps_[i](pieces, first);
  }
}

}  // namespace ingot
