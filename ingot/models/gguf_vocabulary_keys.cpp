#include "ingot/models/gguf_vocabulary_keys.h"

#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr std::string_view prefix = "tokenizer.ggml.";

std::string key(std::string_view name) { return std::string(prefix) + std::string(name); }

template <class T>
std::vector<T> list_or_none(const GgufMetadata& metadata, std::string_view name,
                            const std::string& file) {
  const GgufValue* value = metadata.find(key(name));
  if (value == nullptr) {
    return {};
  }
  const auto* array = std::get_if<GgufArray>(&value->value);
  const auto* list = array == nullptr ? nullptr : std::get_if<std::vector<T>>(&array->values);
  check(list != nullptr, ErrorKind::format, file, ": ", key(name),
        ": not a list of the right type: ", shown(*value));
  return *list;
}

// Bytes, which files hold as signed or unsigned numbers.
std::string charsmap_of(const GgufMetadata& metadata, const std::string& file) {
  constexpr std::string_view name = "precompiled_charsmap";
  const GgufValue* value = metadata.find(key(name));
  const auto* array = value == nullptr ? nullptr : std::get_if<GgufArray>(&value->value);
  if (array != nullptr && std::holds_alternative<std::vector<int8_t>>(array->values)) {
    const auto& bytes = std::get<std::vector<int8_t>>(array->values);
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = list_or_none<uint8_t>(metadata, name, file);
  return {bytes.begin(), bytes.end()};
}

template <class T>
void set_list(std::string_view name, const std::vector<T>& list, GgufMetadata& out) {
  out.set(key(name), GgufValue{GgufArray{list}});
}

}  // namespace

std::optional<GgufVocabulary> gguf_vocabulary_from(const GgufMetadata& metadata,
                                                   const std::string& file) {
  GgufVocabulary out;
  out.tokens = list_or_none<std::string>(metadata, "tokens", file);
  if (out.tokens.empty()) {
    return std::nullopt;
  }
  out.source = file;
  out.model = metadata.text(key("model"), file);
  out.pre = metadata.text_or(key("pre"), "", file);
  out.scores = list_or_none<float>(metadata, "scores", file);
  out.types = list_or_none<int32_t>(metadata, "token_type", file);
  out.merges = list_or_none<std::string>(metadata, "merges", file);
  for (const size_t size : {out.scores.size(), out.types.size()}) {
    check(size == 0 || size == out.tokens.size(), ErrorKind::format, file,
          ": tokenizer.ggml: ", out.tokens.size(), " tokens, but ", size, " scores or types");
  }
  const auto id = [&](std::string_view name, std::optional<int64_t>& field) {
    if (metadata.contains(key(name))) {
      const int64_t value = metadata.integer(key(name), file);
      const bool inside = value >= 0 && value < static_cast<int64_t>(out.tokens.size());
      field = inside ? std::optional(value) : std::nullopt;  // files use 2^32 − 1 for none
    }
  };
  id("bos_token_id", out.bos);
  id("eos_token_id", out.eos);
  id("eot_token_id", out.end_of_turn);
  id("seperator_token_id", out.separator);
  id("unknown_token_id", out.unknown);
  id("padding_token_id", out.pad);
  const auto flag = [&](std::string_view name, std::optional<bool>& field) {
    if (metadata.contains(key(name))) {
      field = metadata.flag_or(key(name), false, file);
    }
  };
  flag("add_bos_token", out.add_bos);
  flag("add_eos_token", out.add_eos);
  flag("add_space_prefix", out.add_space_prefix);
  flag("remove_extra_whitespaces", out.remove_extra_spaces);
  out.charsmap = charsmap_of(metadata, file);
  out.chat_template = metadata.text_or("tokenizer.chat_template", "", file);
  return out;
}

void gguf_vocabulary_to(const GgufVocabulary& tokens, GgufMetadata& out) {
  out.set(key("model"), tokens.model);
  if (!tokens.pre.empty()) {
    out.set(key("pre"), tokens.pre);
  }
  set_list("tokens", tokens.tokens, out);
  if (!tokens.scores.empty()) {
    set_list("scores", tokens.scores, out);
  }
  if (!tokens.types.empty()) {
    set_list("token_type", tokens.types, out);
  }
  if (tokens.model == "gpt2") {
    set_list("merges", tokens.merges, out);
  }
  const auto id = [&](std::string_view name, const std::optional<int64_t>& value) {
    if (value) {
      out.set_u32(key(name), *value);
    }
  };
  id("bos_token_id", tokens.bos);
  id("eos_token_id", tokens.eos);
  id("eot_token_id", tokens.end_of_turn);
  id("seperator_token_id", tokens.separator);
  id("unknown_token_id", tokens.unknown);
  id("padding_token_id", tokens.pad);
  const auto flag = [&](std::string_view name, const std::optional<bool>& value) {
    if (value) {
      out.set_bool(key(name), *value);
    }
  };
  flag("add_bos_token", tokens.add_bos);
  flag("add_eos_token", tokens.add_eos);
  flag("add_space_prefix", tokens.add_space_prefix);
  flag("remove_extra_whitespaces", tokens.remove_extra_spaces);
  if (!tokens.charsmap.empty()) {
    set_list("precompiled_charsmap",
             std::vector<uint8_t>(tokens.charsmap.begin(), tokens.charsmap.end()), out);
  }
  if (!tokens.chat_template.empty()) {
    out.set("tokenizer.chat_template", tokens.chat_template);
  }
}

}  // namespace ingot
