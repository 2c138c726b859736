#include "ingot/text/normalizer.h"

#include <array>
#include <map>
#include <memory>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/charsmap.h"
#include "ingot/text/component.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

template <class Each>
std::string mapped_chars(std::string_view text, const Each& each) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_char(text.data() + at);
    each(out, c.code);
    at += c.bytes;
  }
  return out;
}

template <class Keeps>
std::string filtered(std::string_view text, const Keeps& keeps) {
  return mapped_chars(text, [&](std::string& out, char32_t c) {
    if (keeps(c)) {
      append_utf8(out, c);
    }
  });
}

std::string lowered(std::string_view text) { return mapped_chars(text, append_lower); }

std::string stripped(std::string_view text, bool left, bool right) {
  while (left && !text.empty() && is_space(utf8_char(text.data()).code)) {
    text.remove_prefix(utf8_char(text.data()).bytes);
  }
  while (right && !text.empty() && is_space(utf8_last_char(text).code)) {
    text.remove_suffix(utf8_last_char(text).bytes);
  }
  return std::string(text);
}

struct BertSettings {
  bool clean = true;
  bool cjk = true;
  bool accents = false;  // stripped
  bool lower = true;
};

// google-research/bert, tokenization.py: BasicTokenizer, up to the splitting.
std::string bert_normalized(std::string text, const BertSettings& settings) {
  if (settings.clean) {
    text = mapped_chars(text, [](std::string& out, char32_t c) {
      const bool blank = c == '\t' || c == '\n' || c == '\r';
      if (blank || is_space(c)) {
        out += ' ';
      } else if (c != 0 && c != replacement_character && !is_other(c)) {
        append_utf8(out, c);
      }
    });
  }
  if (settings.cjk) {
    text = mapped_chars(text, [](std::string& out, char32_t c) {
      out += is_cjk(c) ? " " : "";
      append_utf8(out, c);
      out += is_cjk(c) ? " " : "";
    });
  }
  if (settings.accents) {
    text =
        filtered(normalized(text, NormalForm::nfd), [](char32_t c) { return !is_nonspacing(c); });
  }
  return settings.lower ? lowered(text) : text;
}

// llama.cpp, llm_tokenizer_wpm: of every character the first of its decomposition, in small
// letters; no marks.
std::string gguf_bert_normalized(std::string_view text) {
  return mapped_chars(text, [](std::string& out, char32_t c) {
    const std::string whole = c < 0x80 ? utf8_of(c) : normalized(utf8_of(c), NormalForm::nfd);
    const char32_t base = utf8_char(whole.data()).code;
    if (is_space(base)) {
      out += ' ';
    } else if (base != 0 && base != replacement_character && !is_mark(base) &&
               !is_control_or_format(base)) {
      append_lower(out, base);
    }
  });
}

// The rules of SentencePiece's "nmt" normalisation that are no Unicode form.
std::string nmt_normalized(std::string_view text) {
  return mapped_chars(text, [](std::string& out, char32_t c) {
    const bool removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                         c == 0x7F || c == 0x8F || c == 0x9F;
    const bool blank = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == replacement_character;
    if (blank) {
      out += ' ';
    } else if (!removed) {
      append_utf8(out, c);
    }
  });
}

// As Hugging Face applies the map: to grapheme clusters of less than six bytes, else to characters;
// an entry that a cluster only begins with replaces the cluster.
std::string charsmap_normalized(const Charsmap& map, std::string_view text) {
  std::string out;
  size_t begin = 0;
  for (const size_t end : grapheme_ends(text)) {
    const std::string_view cluster = text.substr(begin, end - begin);
    begin = end;
    if (const Charsmap::Match match = map.shortest(cluster);
        cluster.size() < 6 && match.bytes > 0) {
      out += match.replacement;
      continue;
    }
    for (size_t at = 0; at < cluster.size();) {
      const std::string_view c = cluster.substr(at, utf8_char(cluster.data() + at).bytes);
      const Charsmap::Match match = map.shortest(c);
      out += match.bytes > 0 ? match.replacement : c;
      at += c.size();
    }
  }
  return out;
}

struct SentencePieceSettings {
  std::shared_ptr<const Charsmap> map;
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
};

// google/sentencepiece, src/normalizer.cc, Normalizer::Normalize: longest entries of the map, one
// space for many and none at the ends, a space in front, '▁' for spaces.
std::string sentencepiece_normalized(const SentencePieceSettings& settings, std::string_view text,
                                     bool first) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const Charsmap::Match match =
        settings.map ? settings.map->longest(text.substr(at)) : Charsmap::Match();
    const size_t bytes = match.bytes > 0 ? match.bytes : utf8_char(text.data() + at).bytes;
    plain += match.bytes > 0 ? match.replacement : text.substr(at, bytes);
    at += bytes;
  }
  if (settings.remove_extra_spaces) {
    const size_t begin = plain.find_first_not_of(' ');
    const size_t end = plain.find_last_not_of(' ');
    plain = begin == std::string::npos ? "" : plain.substr(begin, end + 1 - begin);
  }
  if (plain.empty()) {
    return "";
  }
  const std::string_view space = settings.escape_spaces ? "▁" : " ";
  std::string out(settings.dummy_prefix && first ? space : "");
  char before = 'x';
  for (const char c : plain) {
    if (c != ' ') {
      out += c;
    } else if (before != ' ' || !settings.remove_extra_spaces) {
      out += space;
    }
    before = c;
  }
  return out;
}

std::shared_ptr<const Charsmap> charsmap_of(const Json& component, const std::string& subject) {
  const auto text = json_field_or<std::string>(component, "precompiled_charsmap", "", subject);
  if (text.empty()) {
    return nullptr;
  }
  const std::optional<std::string> bytes = from_base64(text);
  check(bytes.has_value(), ErrorKind::format, subject, ": precompiled_charsmap is not Base64");
  return std::make_shared<Charsmap>(*bytes, subject);
}

}  // namespace

Normalizer::Normalizer(const std::string& json, const std::string& subject) {
  const Json component = parse_json(json, subject);
  if (!component.is_null()) {
    add(component, subject, 0);
  }
  form_ = steps_.size() == 1 ? form_ : std::nullopt;
}

void Normalizer::add(const Json& component, const std::string& subject, int depth) {
  const std::string type = component_type(component, subject, depth);
  const std::string at = subject + "." + type;
  const auto flag = [&](const char* key, bool otherwise) {
    return json_field_or<bool>(component, key, otherwise, at);
  };
  const auto step = [&](auto function) {
    steps_.push_back([function](std::string& text, bool) { text = function(std::move(text)); });
  };
  static const std::map<std::string, NormalForm> forms = {{"NFC", NormalForm::nfc},
                                                          {"NFD", NormalForm::nfd},
                                                          {"NFKC", NormalForm::nfkc},
                                                          {"NFKD", NormalForm::nfkd}};
  if (type == "Sequence") {
    for (const Json& part : component_list(component, "normalizers", at)) {
      add(part, at, depth + 1);
    }
  } else if (const auto form = forms.find(type); form != forms.end()) {
    form_ = form->second;
    steps_.push_back([form = form->second](std::string& text, bool) {
      if (!is_normalized(text, form)) {
        text = normalized(text, form);
      }
    });
  } else if (type == "Lowercase") {
    step(lowered);
  } else if (type == "StripAccents") {
    step([](const std::string& text) {
      return filtered(text, [](char32_t c) { return !is_mark(c); });
    });
  } else if (type == "Strip") {
    step([left = flag("strip_left", true), right = flag("strip_right", true)](
             const std::string& text) { return stripped(text, left, right); });
  } else if (type == "Replace") {
    step([pattern = component_pattern(component, at),
          content = json_field<std::string>(component, "content", at)](const std::string& text) {
      return pattern->replaced(text, content);
    });
  } else if (type == "Prepend") {
    step([front = json_field<std::string>(component, "prepend", at)](const std::string& text) {
      return text.empty() ? text : front + text;
    });
  } else if (type == "ByteLevel") {
    step(to_symbols);
  } else if (type == "GgufBert") {
    step(gguf_bert_normalized);
  } else if (type == "Nmt") {
    step(nmt_normalized);
  } else if (type == "BertNormalizer") {
    const bool lower = flag("lowercase", true);
    const BertSettings settings = {flag("clean_text", true), flag("handle_chinese_chars", true),
                                   flag("strip_accents", lower), lower};
    step([settings](std::string text) { return bert_normalized(std::move(text), settings); });
  } else if (type == "Precompiled") {
    if (const auto map = charsmap_of(component, at)) {
      step([map](const std::string& text) { return charsmap_normalized(*map, text); });
    }
  } else if (type == "SentencePiece") {
    const SentencePieceSettings settings = {charsmap_of(component, at), flag("dummy_prefix", true),
                                            flag("remove_extra_spaces", true),
                                            flag("escape_spaces", true)};
    keeps_added_ = true;
    steps_.push_back([settings](std::string& text, bool first) {
      text = sentencepiece_normalized(settings, text, first);
    });
  } else {
    unknown_component(subject, "normalizer", type);
  }
}

void Normalizer::apply(std::string& text, bool first) const {
  for (const Step& step : steps_) {
    step(text, first);
  }
}

std::string Normalizer::of_added(const std::string& content) const {
  std::string out = content;
  if (!keeps_added_) {
    apply(out, true);
  }
  return out;
}

}  // namespace ingot
