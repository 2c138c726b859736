#include "ingot/text/token_decoder.h"

#include <algorithm>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/component.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

constexpr const char* replacement_text = "\xEF\xBF\xBD";

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  size_t copied = 0;
  for (size_t at = what.empty() ? std::string_view::npos : text.find(what);
       at != std::string_view::npos; at = text.find(what, copied)) {
    out += text.substr(copied, at - copied);
    out += by;
    copied = at + what.size();
  }
  out += text.substr(copied);
  return out;
}

std::string joined(const Strings& tokens, std::string_view between = "") {
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    out += i > 0 ? between : "";
    out += tokens[i];
  }
  return out;
}

// The byte of <0x41>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

void decode_bytes(Strings& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    bytes += from_symbols(token).value_or(token);
  }
  tokens = {with_replacements(bytes)};
}

void decode_metaspace(Strings& tokens, const std::string& mark, bool prefixed) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], mark, i == 0 && prefixed ? "" : " ");
  }
}

// English spacing as Hugging Face's decoders mend it.
std::string cleaned_up(std::string text) {
  static constexpr const char* pairs[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [what, by] : pairs) {
    text = replaced(text, what, by);
  }
  return text;
}

void decode_wordpiece(Strings& tokens, const std::string& prefix, bool cleanup) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      tokens[i] = !prefix.empty() && tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size())
                                                                   : " " + tokens[i];
    }
    tokens[i] = cleanup ? cleaned_up(tokens[i]) : tokens[i];
  }
}

enum class Invalid : uint8_t { run, per_byte };

// A run of byte tokens becomes the characters it spells. Where it spells none: one U+FFFD for every
// token of the run, or one for each byte that is wrong.
void decode_byte_tokens(Strings& tokens, Invalid invalid) {
  Strings out;
  std::string run;
  const auto finish = [&] {
    if (run.empty()) {
      return;
    }
    std::string text;
    if (is_valid_utf8(run)) {
      text = run;
    } else if (invalid == Invalid::run) {
      for (size_t i = 0; i < run.size(); ++i) {
        text += replacement_text;
      }
    } else {
      for (std::string_view left = run; !left.empty();) {
        const size_t good = valid_utf8_prefix(left);
        text += left.substr(0, good);
        text += good < left.size() ? replacement_text : "";
        left.remove_prefix(std::min(left.size(), good + 1));
      }
    }
    out.push_back(text);
    run.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = byte_of(token)) {
      run += *byte;
    } else {
      finish();
      out.push_back(std::move(token));
    }
  }
  finish();
  tokens = std::move(out);
}

// Up to `start` characters `c` from the front of every token, and up to `stop` from its end.
void strip(Strings& tokens, const std::string& c, int64_t start, int64_t stop) {
  for (std::string& token : tokens) {
    std::string_view left = token;
    for (int64_t i = 0; i < start && left.starts_with(c); ++i) {
      left.remove_prefix(c.size());
    }
    for (int64_t i = 0; i < stop && left.ends_with(c); ++i) {
      left.remove_suffix(c.size());
    }
    token = std::string(left);
  }
}

void decode_word_ends(Strings& tokens, const std::string& suffix) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  }
}

// Connectionist temporal classification: repetitions are one, then padding goes.
void decode_ctc(Strings& tokens, const std::string& pad, const std::string& delimiter,
                bool cleanup) {
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (std::string& token : tokens) {
    token = replaced(token, pad, "");
    token = cleanup ? replaced(cleaned_up(token), delimiter, " ") : token;
  }
  std::erase(tokens, "");
}

// google/sentencepiece, src/sentencepiece_processor.cc: the '▁' that was put in front is dropped.
// What stands for the unknown token is `surface`.
struct SentencePieceText {
  bool prefixed = true;
  bool strips_all = true;
  std::string unknown;
  std::string surface;
};

void decode_sentencepiece(Strings& tokens, const SentencePieceText& settings) {
  constexpr std::string_view mark = "▁";
  bool at_start = true;
  for (std::string& token : tokens) {
    if (token == settings.unknown) {
      token = settings.surface;
      at_start = false;
      continue;
    }
    std::string_view left = token;
    if (at_start && settings.prefixed && left.starts_with(mark)) {
      left.remove_prefix(mark.size());
      at_start = settings.strips_all && left.empty();
    } else {
      at_start = false;
    }
    token = replaced(left, mark, " ");
  }
}

}  // namespace

TokenDecoder::TokenDecoder(const std::string& json, const std::string& subject) {
  const Json component = parse_json(json, subject);
  joins_by_spaces_ = component.is_null();
  if (!component.is_null()) {
    add(component, subject, 0);
  }
  only_bytes_ = only_bytes_ && steps_.size() == 1;
}

void TokenDecoder::add(const Json& component, const std::string& subject, int depth) {
  const std::string type = component_type(component, subject, depth);
  const std::string at = subject + "." + type;
  const auto flag = [&](const char* key, bool otherwise) {
    return json_field_or<bool>(component, key, otherwise, at);
  };
  const auto word = [&](const char* key, const char* otherwise) {
    return json_field_or<std::string>(component, key, otherwise, at);
  };
  const auto count = [&](const char* key) { return json_field_or<int64_t>(component, key, 0, at); };
  const auto step = [&](auto function) { steps_.emplace_back(std::move(function)); };
  if (type == "Sequence") {
    for (const Json& part : component_list(component, "decoders", at)) {
      add(part, at, depth + 1);
    }
  } else if (type == "ByteLevel") {
    only_bytes_ = true;
    step(decode_bytes);
  } else if (type == "Metaspace") {
    const bool prefixed =
        word("prepend_scheme", flag("add_prefix_space", true) ? "always" : "never") != "never";
    step([mark = word("replacement", "▁"), prefixed](Strings& tokens) {
      decode_metaspace(tokens, mark, prefixed);
    });
  } else if (type == "WordPiece") {
    step([prefix = word("prefix", "##"), cleanup = flag("cleanup", true)](Strings& tokens) {
      decode_wordpiece(tokens, prefix, cleanup);
    });
  } else if (type == "ByteFallback") {
    has_byte_tokens_ = true;
    const Invalid invalid = word("invalid", "run") == "per_byte" ? Invalid::per_byte : Invalid::run;
    step([invalid](Strings& tokens) { decode_byte_tokens(tokens, invalid); });
  } else if (type == "Fuse") {
    step([](Strings& tokens) { tokens = {joined(tokens)}; });
  } else if (type == "Replace") {
    step([pattern = component_pattern(component, at),
          content = word("content", "")](Strings& tokens) {
      for (std::string& token : tokens) {
        token = pattern->replaced(token, content);
      }
    });
  } else if (type == "Strip") {
    step([c = word("content", " "), start = count("start"), stop = count("stop")](Strings& tokens) {
      strip(tokens, c, start, stop);
    });
  } else if (type == "BPEDecoder") {
    marks_word_ends_ = true;
    step([suffix = word("suffix", "</w>")](Strings& tokens) { decode_word_ends(tokens, suffix); });
  } else if (type == "CTC") {
    marks_word_ends_ = true;
    step([pad = word("pad_token", "<pad>"), delimiter = word("word_delimiter_token", "|"),
          cleanup = flag("cleanup", true)](Strings& tokens) {
      decode_ctc(tokens, pad, delimiter, cleanup);
    });
  } else if (type == "SentencePiece") {
    has_byte_tokens_ = true;
    const SentencePieceText settings = {flag("prefixed", true), flag("strips_all", true),
                                        word("unknown", "<unk>"),
                                        word("surface", " \xE2\x81\x87 ")};
    step([settings](Strings& tokens) {
      decode_sentencepiece(tokens, settings);
      decode_byte_tokens(tokens, Invalid::per_byte);
    });
  } else {
    unknown_component(subject, "decoder", type);
  }
}

std::string TokenDecoder::text(Strings tokens) const {
  for (const Step& step : steps_) {
    step(tokens);
  }
  return joined(tokens, joins_by_spaces_ ? " " : "");
}

bool TokenDecoder::looks_ahead(const std::string& token) const {
  return marks_word_ends_ || (has_byte_tokens_ && byte_of(token).has_value());
}

}  // namespace ingot
