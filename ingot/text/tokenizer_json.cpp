#include "ingot/text/tokenizer_json.h"

#include <cmath>
#include <unordered_map>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::json;
using Ids = std::unordered_map<std::string, TokenId>;

// Far more than any vocabulary has, and little enough to hold a list of.
constexpr int64_t most_tokens = int64_t{1} << 24;

TokenId checked_id(const Json& value, const std::string& subject, const std::string& token) {
  check(
      value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < most_tokens,
      ErrorKind::format, subject, ": the id of '", token, "' must be a whole number below ",
      most_tokens, ": ", value.dump());
  return value.get<TokenId>();
}

// `count`: of the tokens that the file holds; ids far above it are a mistake, not a list to make.
void place(TokenizerSpec& spec, TokenId id, const std::string& token, size_t count,
           const std::string& subject) {
  check(static_cast<size_t>(id) < 2 * count + 100'000, ErrorKind::format, subject, ": '", token,
        "' has the id ", id, " in a vocabulary of ", count);
  if (static_cast<size_t>(id) >= spec.tokens.size()) {
    spec.tokens.resize(static_cast<size_t>(id) + 1);
  }
  spec.tokens[static_cast<size_t>(id)] = token;
}

Ids read_vocabulary(const Json& vocabulary, TokenizerSpec& spec, const std::string& subject) {
  check(vocabulary.is_object(), ErrorKind::format, subject,
        ": the vocabulary must be an object of ids by token");
  Ids ids;
  ids.reserve(vocabulary.size());
  for (const auto& [token, value] : vocabulary.items()) {
    const TokenId id = checked_id(value, subject, token);
    place(spec, id, token, vocabulary.size(), subject);
    ids.emplace(token, id);
  }
  return ids;
}

// Unigram: a list of tokens with their scores, ids by place.
void read_scores(const Json& vocabulary, TokenizerSpec& spec, const std::string& subject) {
  check(vocabulary.is_array(), ErrorKind::format, subject,
        ": the vocabulary of a Unigram model must be a list of tokens with scores");
  for (const Json& entry : vocabulary) {
    check(entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number() &&
              std::isfinite(entry[1].get<double>()),
          ErrorKind::format, subject, ": entry ", spec.tokens.size(),
          " of the vocabulary must be a token and its score: ", entry.dump());
    spec.tokens.push_back(entry[0].get<std::string>());
    spec.scores.push_back(entry[1].get<double>());
  }
}

void add_merge(TokenizerSpec& spec, const Ids& ids, const std::string& left,
               const std::string& right, const std::string& subject) {
  const size_t prefix =
      right.starts_with(spec.continuing_prefix) ? spec.continuing_prefix.size() : 0;
  const std::string result = left + right.substr(prefix);
  const std::string* const parts[] = {&left, &right, &result};
  TokenId found[3];
  for (size_t i = 0; i < 3; ++i) {
    const auto at = ids.find(*parts[i]);
    check(at != ids.end(), ErrorKind::format, subject, ": merge ", spec.merges.size(), ", of '",
          left, "' and '", right, "', names a token that is not in the vocabulary: '", *parts[i],
          "'");
    found[i] = at->second;
  }
  spec.merges.push_back({found[0], found[1], found[2]});
}

void read_merges(const Json& merges, TokenizerSpec& spec, const Ids& ids,
                 const std::string& subject) {
  check(merges.is_array(), ErrorKind::format, subject, ": 'merges' must be a list");
  spec.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      check(space != std::string::npos && text.find(' ', space + 1) == std::string::npos,
            ErrorKind::format, subject, ": merge ", spec.merges.size(),
            " must be two tokens with a space between: '", text, "'");
      add_merge(spec, ids, text.substr(0, space), text.substr(space + 1), subject);
    } else {
      check(merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(),
            ErrorKind::format, subject, ": merge ", spec.merges.size(),
            " must be two tokens: ", merge.dump());
      add_merge(spec, ids, merge[0].get_ref<const std::string&>(),
                merge[1].get_ref<const std::string&>(), subject);
    }
  }
}

// A model without a type, as older files have it, is known by what it holds.
std::string model_type(const Json& model, const std::string& subject) {
  if (model.contains("type")) {
    return json_field<std::string>(model, "type", subject);
  }
  const bool list = model.contains("vocab") && model["vocab"].is_array();
  return model.contains("merges") ? "BPE" : list ? "Unigram" : "WordPiece";
}

void read_unknown(const Json& model, TokenizerSpec& spec, const Ids& ids,
                  const std::string& subject) {
  const auto token = json_field_or<std::string>(model, "unk_token", "", subject);
  if (const auto found = ids.find(token); found != ids.end()) {
    spec.unknown = found->second;
  }
  check(token.empty() || spec.unknown != no_token, ErrorKind::format, subject, ": unk_token '",
        token, "' is not in the vocabulary");
}

void read_model(const Json& model, TokenizerSpec& spec, const std::string& subject) {
  check(model.is_object() && model.contains("vocab"), ErrorKind::format, subject,
        ": 'model' must be an object with a 'vocab'");
  const std::string type = model_type(model, subject);
  const auto flag = [&](const char* key) {
    return json_field_or<bool>(model, key, false, subject);
  };
  const auto word = [&](const char* key, const char* otherwise) {
    return json_field_or<std::string>(model, key, otherwise, subject);
  };
  spec.byte_fallback = flag("byte_fallback");
  if (type == "BPE") {
    spec.model = TokenizerSpec::Model::bpe;
    spec.fuse_unknown = flag("fuse_unk");
    spec.ignore_merges = flag("ignore_merges");
    spec.continuing_prefix = word("continuing_subword_prefix", "");
    spec.end_suffix = word("end_of_word_suffix", "");
    const Ids ids = read_vocabulary(model["vocab"], spec, subject);
    check(model.contains("merges"), ErrorKind::format, subject, ": 'merges' is missing");
    read_merges(model["merges"], spec, ids, subject);
    read_unknown(model, spec, ids, subject);
  } else if (type == "Unigram") {
    spec.model = TokenizerSpec::Model::unigram;
    read_scores(model["vocab"], spec, subject);
    const auto unknown = json_field_or<int64_t>(model, "unk_id", no_token, subject);
    check(unknown >= no_token && unknown < static_cast<int64_t>(spec.tokens.size()),
          ErrorKind::format, subject, ": unk_id ", unknown, " is outside the vocabulary of ",
          spec.tokens.size());
    spec.unknown = static_cast<TokenId>(unknown);
  } else if (type == "WordPiece" || type == "WordLevel") {
    const bool pieces = type == "WordPiece";
    spec.model = pieces ? TokenizerSpec::Model::wordpiece : TokenizerSpec::Model::wordlevel;
    spec.continuing_prefix = pieces ? word("continuing_subword_prefix", "##") : "";
    spec.longest_word = json_field_or<int64_t>(model, "max_input_chars_per_word", 100, subject);
    read_unknown(model, spec, read_vocabulary(model["vocab"], spec, subject), subject);
  } else {
    throw Error(ErrorKind::format, concat(subject, ": unknown model '", type,
                                          "'; known are BPE, Unigram, WordPiece, WordLevel"));
  }
}

void read_added(const Json& list, TokenizerSpec& spec, const std::string& subject) {
  check(list.is_array(), ErrorKind::format, subject, ": 'added_tokens' must be a list");
  for (const Json& entry : list) {
    check(entry.is_object() && entry.contains("id"), ErrorKind::format, subject,
          ": an added token must be an object with an id: ", entry.dump());
    AddedToken token;
    token.content = json_field<std::string>(entry, "content", subject);
    token.id = checked_id(entry["id"], subject, token.content);
    const auto flag = [&](const char* key, bool otherwise) {
      return json_field_or<bool>(entry, key, otherwise, subject);
    };
    token.special = flag("special", false);
    token.single_word = flag("single_word", false);
    token.lstrip = flag("lstrip", false);
    token.rstrip = flag("rstrip", false);
    token.normalized = flag("normalized", !token.special);
    spec.added.push_back(std::move(token));
  }
}

std::string component(const Json& file, const char* key) {
  return file.contains(key) ? file[key].dump() : "null";
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name) {
  const Json file = parse_json(text, name);
  check(file.is_object() && file.contains("model"), ErrorKind::format, name,
        ": this is no tokenizer.json: it has no 'model'");
  TokenizerSpec spec;
  spec.source = name;
  read_model(file["model"], spec, name + ": model");
  read_added(file.contains("added_tokens") ? file["added_tokens"] : Json::array(), spec, name);
  spec.normalizer = component(file, "normalizer");
  spec.pre_tokenizer = component(file, "pre_tokenizer");
  spec.post_processor = component(file, "post_processor");
  spec.decoder = component(file, "decoder");
  return spec;
}

TokenizerSpec read_tokenizer_json(const std::filesystem::path& path) {
  return parse_tokenizer_json(read_file(path), path.string());
}

TokenizerSpec read_vocab_and_merges(const std::filesystem::path& vocab,
                                    const std::filesystem::path& merges) {
  TokenizerSpec spec;
  spec.source = vocab.string();
  const Ids ids = read_vocabulary(parse_json_file(vocab), spec, vocab.string());
  const std::string text = read_file(merges);
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    if (line.empty() || (number == 1 && line.starts_with("#version"))) {
      continue;
    }
    const size_t space = line.find(' ');
    check(space != std::string::npos, ErrorKind::format, merges.string(), ":", number,
          ": a merge must be two tokens with a space between: '", line, "'");
    add_merge(spec, ids, line.substr(0, space), line.substr(space + 1),
              concat(merges.string(), ":", number));
  }
  spec.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  spec.decoder = R"({"type":"ByteLevel"})";
  if (const auto end = ids.find("<|endoftext|>"); end != ids.end()) {
    spec.added.push_back({.id = end->second, .content = end->first, .special = true});
    spec.bos = spec.eos = end->second;
  }
  return spec;
}

}  // namespace ingot
