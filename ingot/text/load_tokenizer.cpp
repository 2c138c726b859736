#include "ingot/text/load_tokenizer.h"

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/sentencepiece.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/tokenizer_json.h"

namespace ingot {
namespace {

using Path = std::filesystem::path;

constexpr const char* settings_file = "tokenizer_config.json";

// The one that the folder holds; empty for none.
Path main_file(const Path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "merges.txt"}) {
    if (file_exists(folder / name)) {
      return folder / name;
    }
  }
  for (const std::string& name : list_folder(folder)) {
    if (name.ends_with(".tiktoken")) {
      return folder / name;
    }
  }
  return {};
}

TokenizerSpec read_json(const Path& path) {
  if (path.filename() == "vocab.json" && file_exists(path.parent_path() / "merges.txt")) {
    return read_vocab_and_merges(path, path.parent_path() / "merges.txt");
  }
  return read_tokenizer_json(path);
}

TokenizerSpec read_spec(const Path& path) {
  if (path.extension() == ".json") {
    return read_json(path);
  }
  if (path.filename() == "merges.txt") {
    return read_vocab_and_merges(path.parent_path() / "vocab.json", path);
  }
  if (path.extension() == ".tiktoken") {
    return read_tiktoken(path, encoding_beside(path));
  }
  const std::string bytes = read_file(path);
  if (is_sentencepiece(bytes)) {
    return parse_sentencepiece(bytes, path.string());
  }
  if (!bytes.empty() && bytes.front() == '{') {
    return parse_tokenizer_json(bytes, path.string());
  }
  check(path.extension() == ".model", ErrorKind::format, path.string(),
        ": no tokenizer that Ingot knows; it reads tokenizer.json, SentencePiece .model, .tiktoken "
        "and vocab.json with merges.txt");
  return read_tiktoken(path, encoding_beside(path));
}

// A token by name in tokenizer_config.json: a string, or an object with its content.
std::optional<TokenId> named_token(const nlohmann::json& settings, const char* key,
                                   const TokenizerSpec& spec) {
  const auto found = settings.find(key);
  if (found == settings.end()) {
    return std::nullopt;
  }
  const nlohmann::json& content =
      found->is_object() && found->contains("content") ? (*found)["content"] : *found;
  if (!content.is_string()) {
    return std::nullopt;
  }
  const auto text = content.get<std::string>();
  for (const AddedToken& token : spec.added) {
    if (token.content == text) {
      return token.id;
    }
  }
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!text.empty() && spec.tokens[id] == text) {
      return static_cast<TokenId>(id);
    }
  }
  return std::nullopt;
}

void read_settings(const Path& path, TokenizerSpec& spec) {
  const nlohmann::json settings = parse_json_file(path);
  check(settings.is_object(), ErrorKind::format, path.string(), ": must be a JSON object");
  const auto set = [&](std::optional<TokenId>& id, const char* key) {
    const auto named = named_token(settings, key, spec);
    id = named ? named : id;
  };
  set(spec.bos, "bos_token");
  set(spec.eos, "eos_token");
  set(spec.pad, "pad_token");
}

}  // namespace

Tokenizer load_tokenizer(const Path& path) {
  Path file = path;
  if (is_folder(path)) {
    file = main_file(path);
    check(
        !file.empty(), ErrorKind::io, path.string(),
        ": the folder holds no tokenizer: neither tokenizer.json, tokenizer.model, merges.txt nor "
        "a .tiktoken file");
  }
  TokenizerSpec spec = read_spec(file);
  if (const Path settings = file.parent_path() / settings_file; file_exists(settings)) {
    read_settings(settings, spec);
  }
  return Tokenizer(std::move(spec));
}

std::vector<Path> tokenizer_files(const Path& path) {
  const Path file = is_folder(path) ? main_file(path) : path;
  std::vector<Path> out;
  if (file.empty()) {
    return out;
  }
  out.push_back(file);
  const auto beside = [&](const std::string& name) {
    const Path other = file.parent_path() / name;
    if (other != file && file_exists(other)) {
      out.push_back(other);
    }
  };
  if (file.filename() == "merges.txt") {
    beside("vocab.json");
  } else if (file.filename() == "vocab.json") {
    beside("merges.txt");
  } else if (file.extension() == ".tiktoken") {
    beside(file.stem().string() + ".meta.json");
  }
  beside(settings_file);
  beside("special_tokens_map.json");
  return out;
}

}  // namespace ingot
