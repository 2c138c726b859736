#include "ingot/text/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/text/charsmap.h"
#include "ingot/text/utf8.h"
#include "ingot/text/word_pattern.h"

namespace ingot {
namespace {

using Json = nlohmann::json;
using Patterns = std::vector<std::string_view>;

constexpr std::string_view o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view bloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view cjk_run = R"([一-龥ࠀ-一가-퟿]+)";

struct PreTokenizers {
  std::vector<std::string_view> names;  // values of tokenizer.ggml.pre; the first is written
  Patterns patterns;                    // text is cut by each in turn, matches and gaps alike
  bool ignore_merges = false;
};

const std::vector<PreTokenizers>& pre_tokenizers() {
  static const std::vector<PreTokenizers> table = {
      {{"gpt-2", "mpt", "olmo", "jais", "phi-2", "roberta-bpe", "jina-es", "jina-de", "jina-v1-en",
        "jina-v2-es", "jina-v2-de", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum",
        "exaone4"},
       {gpt2_regex}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
       {gguf_llama3_pattern},
       true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {gguf_llama3_pattern}},
      {{"qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan", "megrez", "grok-2"},
       {gguf_qwen2_pattern}},
      {{"gpt-4o", "llama4"}, {o200k}},
      {{"tekken"}, {tekken}, true},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2_regex, "[0-9][0-9][0-9]"}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"},
       {R"(\p{N})", gpt2_regex}},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", cjk_run, R"(\p{N})"}},
      {{"deepseek-v3"},
       {R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {{"bloom", "gpt3-finnish", "poro-chat"}, {bloom}},
      {{"viking"}, {bloom, R"(\p{N})"}},
      {{"", "default"}, {R"([\p{P}\$\+<=>\^~\|]+)", gpt2_regex, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return table;
}

using enum GgufTokenType;

GgufTokenType type_of(const GgufVocabulary& in, size_t id) {
  return in.types.empty() ? normal : GgufTokenType{in.types[id]};
}

void read_merges(const GgufVocabulary& in, TokenizerSpec& spec) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (size_t id = 0; id < in.tokens.size(); ++id) {
    ids.emplace(in.tokens[id], static_cast<TokenId>(id));
  }
  for (const std::string& merge : in.merges) {
    const size_t space = merge.find(' ', 1);
    const std::string_view left = std::string_view(merge).substr(0, space);
    const std::string_view right =
        space == std::string::npos ? "" : std::string_view(merge).substr(space + 1);
    const std::string joined = std::string(left) + std::string(right);
    const auto a = ids.find(left);
    const auto b = ids.find(right);
    const auto result = ids.find(joined);
    check(a != ids.end() && b != ids.end() && result != ids.end(), ErrorKind::format, in.source,
          ": merge ", spec.merges.size(), ", '", merge,
          "', names a token that is not in the vocabulary");
    spec.merges.push_back({a->second, b->second, result->second});
  }
}

void read_byte_level(const GgufVocabulary& in, TokenizerSpec& spec) {
  spec.model = TokenizerSpec::Model::bpe;
  read_merges(in, spec);
  const auto& table = pre_tokenizers();
  const auto row = std::find_if(table.begin(), table.end(), [&](const PreTokenizers& entry) {
    return std::find(entry.names.begin(), entry.names.end(), in.pre) != entry.names.end();
  });
  check(row != table.end(), ErrorKind::format, in.source, ": unknown tokenizer.ggml.pre '", in.pre,
        "'; Ingot does not know how it cuts text, so ids would be wrong");
  spec.ignore_merges = row->ignore_merges;
  Json steps = Json::array();
  for (const std::string_view pattern : row->patterns) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  spec.pre_tokenizer = Json({{"type", "Sequence"}, {"pretokenizers", steps}}).dump();
  spec.decoder = R"({"type":"ByteLevel"})";
}

void read_scored(const GgufVocabulary& in, TokenizerSpec& spec) {
  const bool bpe = in.model == "llama";
  check(in.scores.size() == in.tokens.size(), ErrorKind::format, in.source, ": ", in.tokens.size(),
        " tokens and ", in.scores.size(), " scores; they must be as many");
  spec.model = bpe ? TokenizerSpec::Model::bpe : TokenizerSpec::Model::unigram;
  spec.byte_fallback = bpe;
  spec.fuse_unknown = true;
  spec.single_precision = true;
  std::vector<float> scores;
  for (size_t id = 0; id < in.tokens.size(); ++id) {
    check(!std::isnan(in.scores[id]), ErrorKind::format, in.source, ": the score of token ", id,
          " is no number");
    if (type_of(in, id) == normal) {
      scores.push_back(in.scores[id]);
    }
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (size_t id = 0; id < in.tokens.size(); ++id) {
    const bool text = type_of(in, id) == normal;
    const auto at = std::lower_bound(scores.begin(), scores.end(), in.scores[id], std::greater<>());
    if (bpe) {
      spec.ranks.push_back(text ? static_cast<uint32_t>(at - scores.begin()) : Merge::never);
    } else {
      spec.scores.push_back(text ? static_cast<double>(in.scores[id])
                                 : std::numeric_limits<double>::quiet_NaN());
    }
  }
  Json normalizer = {{"type", "SentencePiece"},
                     {"dummy_prefix", in.add_space_prefix.value_or(true)},
                     {"remove_extra_spaces", in.remove_extra_spaces.value_or(!bpe)},
                     {"escape_spaces", true}};
  if (!in.charsmap.empty()) {
    normalizer["precompiled_charsmap"] = to_base64(in.charsmap);
  }
  spec.normalizer = normalizer.dump();
  spec.decoder =
      Json({{"type", "SentencePiece"},
            {"prefixed", in.add_space_prefix.value_or(true)},
            {"strips_all", false},
            {"unknown",
             spec.unknown == no_token ? "" : in.tokens[static_cast<size_t>(spec.unknown)]}})
          .dump();
}

// llama.cpp, llm_tokenizer_wpm: its vocabulary marks the starts of words and not what continues
// them, and words have no longest length.
void read_wordpiece(TokenizerSpec& spec) {
  spec.model = TokenizerSpec::Model::wordpiece;
  spec.continuing_prefix = "";
  spec.longest_word = INT64_MAX;
  spec.normalizer =
      R"({"type":"Sequence","normalizers":[{"type":"GgufBert"},{"type":"BertNormalizer",)"
      R"("clean_text":false,"handle_chinese_chars":true,"strip_accents":false,"lowercase":false}]})";
  spec.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"BertPreTokenizer"},)"
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":false}]})";
  spec.decoder = R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Replace",)"
                 R"("pattern":{"String":"▁"},"content":" "},)"
                 R"({"type":"Strip","content":" ","start":1,"stop":0}]})";
}

// The ids that llama.cpp takes where the file names none.
GgufVocabulary with_defaults(GgufVocabulary in) {
  const auto set = [](std::optional<int64_t>& id, int64_t otherwise) {
    id = id.value_or(otherwise);
  };
  if (in.model == "llama") {
    set(in.bos, 1);
    set(in.eos, 2);
    set(in.unknown, 0);
  } else if (in.model == "bert") {
    set(in.bos, 101);
    set(in.unknown, 100);
    set(in.separator, 102);
    set(in.pad, 0);
  } else if (in.model == "t5") {
    set(in.eos, 1);
    set(in.unknown, 2);
    set(in.pad, 0);
  }
  return in;
}

std::optional<TokenId> checked(const std::optional<int64_t>& id, const GgufVocabulary& in) {
  const bool good = id && *id >= 0 && *id < static_cast<int64_t>(in.tokens.size());
  return good ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
}

void add_frame(const GgufVocabulary& in, TokenizerSpec& spec) {
  const bool scored = in.model == "llama";
  const bool bert = in.model == "bert";
  Json items = Json::array();
  Json specials = Json::object();
  const auto add = [&](const std::optional<TokenId>& id, bool wanted) {
    if (id && wanted) {
      const std::string& token = in.tokens[static_cast<size_t>(*id)];
      items.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      specials[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    }
  };
  add(spec.bos, in.add_bos.value_or(scored || bert));
  items.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(bert ? checked(in.separator, in) : spec.eos, in.add_eos.value_or(bert || in.model == "t5"));
  if (!specials.empty()) {
    spec.post_processor = Json({{"type", "TemplateProcessing"},
                                {"single", items},
                                {"pair", Json::array()},
                                {"special_tokens", specials}})
                              .dump();
  }
}

}  // namespace

std::string gguf_pre_of(const std::vector<std::string>& patterns) {
  for (const PreTokenizers& entry : pre_tokenizers()) {
    if (std::ranges::equal(entry.patterns, patterns)) {
      return std::string(entry.names.front());
    }
  }
  return "";
}

TokenizerSpec from_gguf(const GgufVocabulary& vocabulary) {
  const GgufVocabulary in = with_defaults(vocabulary);
  check(!in.tokens.empty(), ErrorKind::format, in.source,
        ": the file holds no vocabulary: tokenizer.ggml.tokens is missing or empty");
  check(in.types.empty() || in.types.size() == in.tokens.size(), ErrorKind::format, in.source, ": ",
        in.tokens.size(), " tokens and ", in.types.size(), " token types; they must be as many");
  TokenizerSpec spec;
  spec.source = in.source;
  spec.tokens = in.tokens;
  spec.unknown = checked(in.unknown, in).value_or(no_token);
  spec.bos = checked(in.bos, in);
  spec.eos = checked(in.eos, in);
  spec.pad = checked(in.pad, in);
  for (size_t id = 0; id < in.tokens.size(); ++id) {
    const GgufTokenType type = type_of(in, id);
    check(is_valid_utf8(in.tokens[id]), ErrorKind::format, in.source, ": token ", id,
          " is not UTF-8");
    if (type == control || type == user_defined || type == unknown || type == unused) {
      // Unused tokens have no text, as those of control. Some files call the end of a text
      // user-defined; it is structure all the same.
      const auto own = static_cast<TokenId>(id);
      const bool text =
          type == user_defined && own != spec.bos && own != spec.eos && in.tokens[id] != "</s>";
      spec.added.push_back({.id = own, .content = in.tokens[id], .special = !text});
    }
  }
  if (in.model == "gpt2") {
    read_byte_level(in, spec);
  } else if (in.model == "llama" || in.model == "t5") {
    read_scored(in, spec);
  } else if (in.model == "bert") {
    read_wordpiece(spec);
  } else {
    throw Error(ErrorKind::format, concat(in.source, ": unknown tokenizer.ggml.model '", in.model,
                                          "'; known are gpt2, llama, bert, t5"));
  }
  add_frame(in, spec);
  return spec;
}

}  // namespace ingot
