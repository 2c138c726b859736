#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ingot/base/json_library.h"
#include "ingot/text/gguf_vocabulary.h"
#include "ingot/text/word_pattern.h"

// From Hugging Face's tokenizer.json to llama.cpp's tokenizers.
namespace ingot {
namespace {

using nlohmann::json;

// A member of an object, null where there is none.
const json& member(const json& object, const char* name) {
  static const json nothing;
  const auto at = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && at != object.end() ? *at : nothing;
}

std::string word(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

// The parts of a Sequence, or the thing itself.
std::vector<json> parts_of(const json& step, const char* list) {
  if (word(member(step, "type")) == "Sequence" && member(step, list).is_array()) {
    return member(step, list).get<std::vector<json>>();
  }
  return step.is_object() ? std::vector<json>{step} : std::vector<json>{};
}

// The patterns that a step before the last cuts by; nothing where it is no pattern of its own.
std::optional<std::string> pattern_of(const json& part) {
  const std::string type = word(member(part, "type"));
  if (type == "Digits" && member(part, "individual_digits") == json(true)) {
    return R"(\p{N})";
  }
  const std::string behavior = word(member(part, "behavior"));
  const bool inverted = member(part, "invert") == json(true);
  // Where a pattern matches everything it is the same whether gaps are kept or removed.
  const bool isolates = type == "Split" && ((behavior == "Isolated" && !inverted) ||
                                            (behavior == "Removed" && inverted));
  const std::string pattern = word(member(member(part, "pattern"), "Regex"));
  return isolates && !pattern.empty() ? std::optional(pattern) : std::nullopt;
}

// llama.cpp's name for how text is divided before bytes are merged; "" where it has none.
std::string divider_of(const json& tokenizer) {
  const std::vector<json> parts = parts_of(member(tokenizer, "pre_tokenizer"), "pretokenizers");
  if (parts.empty() || word(member(parts.back(), "type")) != "ByteLevel") {
    return "";
  }
  std::vector<std::string> patterns;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto pattern = pattern_of(parts[i]);
    if (!pattern) {
      return "";
    }
    patterns.push_back(*pattern);
  }
  if (member(parts.back(), "use_regex") != json(false)) {
    patterns.emplace_back(gpt2_regex);
  }
  return gguf_pre_of(patterns);
}

bool prepends_space(const json& tokenizer) {
  for (const json& part : parts_of(member(tokenizer, "normalizer"), "normalizers")) {
    if (word(member(part, "type")) == "Prepend") {
      return true;
    }
  }
  for (const json& part : parts_of(member(tokenizer, "pre_tokenizer"), "pretokenizers")) {
    if (word(member(part, "type")) == "Metaspace") {
      return word(member(part, "prepend_scheme")) != "never";
    }
  }
  return false;
}

// Both spellings: "a b" and ["a", "b"].
std::vector<std::string> merges_of(const json& model) {
  std::vector<std::string> out;
  for (const json& one : member(model, "merges")) {
    if (one.is_string()) {
      out.push_back(one.get<std::string>());
    } else if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string()) {
      out.push_back(one[0].get<std::string>() + " " + one[1].get<std::string>());
    }
  }
  return out;
}

bool is_byte(const std::string& token) {
  return token.size() == 6 && token.starts_with("<0x") && token.back() == '>';
}

bool place(const std::string& token, const json& id, std::vector<std::string>& tokens,
           std::vector<int32_t>& types, GgufTokenType type) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
      id.get<int64_t>() >= static_cast<int64_t>(tokens.size())) {
    return false;
  }
  const auto at = static_cast<size_t>(id.get<int64_t>());
  tokens[at] = token;
  types[at] = static_cast<int32_t>(type);
  return true;
}

// Ids without a token are told apart by their number, as llama.cpp wants no name twice.
bool fill_tokens(const json& tokenizer, int64_t vocab, GgufVocabulary& out) {
  out.types.assign(static_cast<size_t>(vocab), static_cast<int32_t>(GgufTokenType::unused));
  for (int64_t id = 0; id < vocab; ++id) {
    out.tokens.push_back("[PAD" + std::to_string(id) + "]");
  }
  const json& model = member(tokenizer, "model");
  const std::string unknown = word(member(model, "unk_token"));
  for (const auto& [token, id] : member(model, "vocab").items()) {
    const auto type = token == unknown && !unknown.empty()     ? GgufTokenType::unknown
                      : out.model == "llama" && is_byte(token) ? GgufTokenType::byte
                                                               : GgufTokenType::normal;
    if (!place(token, id, out.tokens, out.types, type)) {
      return false;
    }
  }
  for (const json& added : member(tokenizer, "added_tokens")) {
    const std::string token = word(member(added, "content"));
    const bool special = member(added, "special") == json(true);
    const auto type = token == unknown && !unknown.empty() ? GgufTokenType::unknown
                      : special                            ? GgufTokenType::control
                                                           : GgufTokenType::user_defined;
    if (!place(token, member(added, "id"), out.tokens, out.types, type)) {
      return false;
    }
  }
  return true;
}

// Pieces are merged by score instead of by rank: −rank of the first merge that makes a piece.
std::vector<float> scores_of(const GgufVocabulary& tokens) {
  std::unordered_map<std::string, float> rank;
  for (size_t i = 0; i < tokens.merges.size(); ++i) {
    std::string joined = tokens.merges[i];
    joined.erase(joined.find(' '), 1);
    rank.emplace(std::move(joined), static_cast<float>(i));
  }
  std::vector<float> out;
  for (const std::string& token : tokens.tokens) {
    const auto at = rank.find(token);
    out.push_back(at == rank.end() ? 0.0F : -at->second - 1);
  }
  return out;
}

std::optional<int64_t> id_of(const GgufVocabulary& tokens, const std::string& token) {
  const auto at = std::find(tokens.tokens.begin(), tokens.tokens.end(), token);
  return token.empty() || at == tokens.tokens.end()
             ? std::nullopt
             : std::optional<int64_t>(at - tokens.tokens.begin());
}

// "bos_token": "<s>", or {"content": "<s>"}.
std::optional<int64_t> named_id(const GgufVocabulary& tokens, const json& config,
                                const char* name) {
  const json& value = member(config, name);
  return id_of(tokens, value.is_object() ? word(member(value, "content")) : word(value));
}

bool template_starts_with(const json& tokenizer, const std::string& token) {
  for (const json& step : parts_of(member(tokenizer, "post_processor"), "processors")) {
    const json& single = member(step, "single");
    if (single.is_array() && !single.empty() &&
        word(member(member(single[0], "SpecialToken"), "id")) == token) {
      return true;
    }
  }
  return false;
}

void take_special(const json& tokenizer, const json& config, const json& generation,
                  GgufVocabulary& out) {
  out.bos = named_id(out, config, "bos_token");
  out.eos = named_id(out, config, "eos_token");
  out.unknown = named_id(out, config, "unk_token");
  out.pad = named_id(out, config, "pad_token");
  const auto vocab = static_cast<int64_t>(out.tokens.size());
  const auto number = [&](const json& value) -> std::optional<int64_t> {
    const bool fits = value.is_number_integer() && value >= 0 && value < vocab;
    return fits ? std::optional(value.get<int64_t>()) : std::nullopt;
  };
  if (!out.bos) {
    out.bos = number(member(generation, "bos_token_id"));
  }
  const json& stops = member(generation, "eos_token_id");
  if (!out.eos) {
    out.eos = number(stops.is_array() && !stops.empty() ? stops[0] : stops);
  }
  for (const json& stop : stops.is_array() ? stops : json::array()) {
    if (number(stop) && number(stop) != out.eos) {
      out.end_of_turn = number(stop);
    }
  }
  const json& adds = member(config, "add_bos_token");
  const bool by_template =
      out.bos && template_starts_with(tokenizer, out.tokens[static_cast<size_t>(*out.bos)]);
  out.add_bos = adds.is_boolean() ? adds.get<bool>() : by_template;
  out.add_eos = member(config, "add_eos_token") == json(true);
  const json& chat = member(config, "chat_template");
  out.chat_template = word(chat);
  for (const json& one : chat.is_array() ? chat : json::array()) {
    if (word(member(one, "name")) == "default") {
      out.chat_template = word(member(one, "template"));
    }
  }
}

}  // namespace

std::optional<GgufVocabulary> to_gguf(const json& tokenizer, const json& tokenizer_config,
                                      const json& generation_config, int64_t vocab,
                                      std::string& why) {
  const json& model = member(tokenizer, "model");
  if (word(member(model, "type")) != "BPE") {
    why = "its model is '" + word(member(model, "type")) + "', carried over is BPE";
    return std::nullopt;
  }
  GgufVocabulary out;
  const bool pieces = member(model, "byte_fallback") == json(true);
  out.model = pieces ? "llama" : "gpt2";
  out.pre = pieces ? "default" : divider_of(tokenizer);
  if (out.pre.empty()) {
    why = "llama.cpp has no name for the way its pre_tokenizer divides text";
    return std::nullopt;
  }
  if (!fill_tokens(tokenizer, vocab, out)) {
    why = "it has tokens beyond the model's vocabulary of " + std::to_string(vocab);
    return std::nullopt;
  }
  out.merges = merges_of(model);
  const auto no_pair = [](const std::string& merge) {
    return merge.find(' ') == std::string::npos;
  };
  if (std::any_of(out.merges.begin(), out.merges.end(), no_pair)) {
    why = "one of its merges is no pair";
    return std::nullopt;
  }
  if (pieces) {
    out.scores = scores_of(out);
    out.merges.clear();
    out.add_space_prefix = prepends_space(tokenizer);
  }
  take_special(tokenizer, tokenizer_config, generation_config, out);
  return out;
}

GgufVocabulary bytes_to_gguf(int64_t vocab) {
  GgufVocabulary out;
  out.model = "gpt2";
  out.pre = "gpt-2";
  const auto letter = [](int code) {  // UTF-8 of a code point below 2^11
    return code < 128 ? std::string(1, static_cast<char>(code))
                      : std::string{static_cast<char>(0xc0 | code >> 6),
                                    static_cast<char>(0x80 | (code & 63))};
  };
  int moved = 256;  // bytes that print nothing take the letters from 256 on (GPT-2: encoder.py)
  for (int64_t id = 0; id < vocab; ++id) {
    const bool prints = (id > 32 && id < 127) || (id > 160 && id < 256 && id != 173);
    if (id < 256) {
      out.tokens.push_back(letter(prints ? static_cast<int>(id) : moved++));
    } else {
      out.tokens.push_back("[PAD" + std::to_string(id) + "]");
    }
    out.types.push_back(
        static_cast<int32_t>(id < 256 ? GgufTokenType::normal : GgufTokenType::unused));
  }
  out.add_bos = false;
  out.add_eos = false;
  return out;
}

}  // namespace ingot
