#include "ingot/text/tiktoken.h"

#include <charconv>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/charsmap.h"
#include "ingot/text/word_pattern.h"

namespace ingot {
namespace {

constexpr std::string_view cl100k_regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view o200k_regex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr int64_t most_tokens = int64_t{1} << 24;

struct Line {
  std::string token;
  TokenId rank;
};

Line parsed_line(std::string_view line, const std::string& where) {
  const size_t space = line.find(' ');
  check(space != std::string_view::npos, ErrorKind::format, where,
        ": a line must be a token in Base64 and its rank: '", line.substr(0, 60), "'");
  const std::optional<std::string> token = from_base64(line.substr(0, space));
  check(token && !token->empty(), ErrorKind::format, where, ": '", line.substr(0, space),
        "' is not Base64 of a token");
  const std::string_view digits = line.substr(space + 1);
  int64_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  check(error == std::errc() && end == digits.data() + digits.size() && rank >= 0 &&
            rank < most_tokens,
        ErrorKind::format, where, ": the rank must be a whole number below ", most_tokens, ": '",
        digits, "'");
  return {*token, static_cast<TokenId>(rank)};
}

TiktokenEncoding from_meta(const std::filesystem::path& path) {
  const nlohmann::json meta = parse_json_file(path);
  TiktokenEncoding out;
  out.name = path.stem().stem().string();
  out.pattern = json_field<std::string>(meta, "pat_str", path.string());
  if (meta.contains("special_tokens")) {
    check(meta["special_tokens"].is_object(), ErrorKind::format, path.string(),
          ": special_tokens must be an object of ids by token");
    for (const auto& [token, id] : meta["special_tokens"].items()) {
      check(id.is_number_unsigned() && id.get<uint64_t>() < most_tokens, ErrorKind::format,
            path.string(), ": the id of '", token, "' must be a number below ", most_tokens);
      out.special.emplace_back(token, id.get<TokenId>());
    }
  }
  return out;
}

// Llama 3's file has no name of its own: tokenizer.model, 128,000 ranks, 256 special tokens.
TiktokenEncoding llama3() {
  TiktokenEncoding out = {"llama3", std::string(cl100k_regex), {}};
  constexpr const char* named[] = {"<|begin_of_text|>",
                                   "<|end_of_text|>",
                                   "<|reserved_special_token_0|>",
                                   "<|reserved_special_token_1|>",
                                   "<|finetune_right_pad_id|>",
                                   "<|step_id|>",
                                   "<|start_header_id|>",
                                   "<|end_header_id|>",
                                   "<|eom_id|>",
                                   "<|eot_id|>",
                                   "<|python_tag|>"};
  TokenId id = 128000;
  for (const char* token : named) {
    out.special.emplace_back(token, id++);
  }
  for (int i = 2; id < 128256; ++i) {
    out.special.emplace_back(concat("<|reserved_special_token_", i, "|>"), id++);
  }
  return out;
}

}  // namespace

std::optional<TiktokenEncoding> tiktoken_encoding(std::string_view name) {
  const std::string gpt2(gpt2_regex);
  const std::string gpt4(cl100k_regex);
  const std::vector<TiktokenEncoding> known = {
      {"gpt2", gpt2, {{"<|endoftext|>", 50256}}},
      {"r50k_base", gpt2, {{"<|endoftext|>", 50256}}},
      {"p50k_base", gpt2, {{"<|endoftext|>", 50256}}},
      {"p50k_edit",
       gpt2,
       {{"<|endoftext|>", 50256},
        {"<|fim_prefix|>", 50281},
        {"<|fim_middle|>", 50282},
        {"<|fim_suffix|>", 50283}}},
      {"cl100k_base",
       gpt4,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base",
       std::string(o200k_regex),
       {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
  };
  for (const TiktokenEncoding& encoding : known) {
    if (encoding.name == name) {
      return encoding;
    }
  }
  return std::nullopt;
}

TokenizerSpec read_tiktoken(const std::filesystem::path& path, const TiktokenEncoding& encoding) {
  const std::string text = read_file(path);
  TokenizerSpec spec;
  spec.source = path.string();
  spec.ignore_merges = true;  // a word that is a token is not built up
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    const Line found = parsed_line(line, concat(path.string(), ":", number));
    const auto id = static_cast<size_t>(found.rank);
    check(id < text.size() / 3 + 100'000, ErrorKind::format, path.string(), ":", number,
          ": the rank ", id, " is far above the number of tokens in the file");
    if (id >= spec.tokens.size()) {
      spec.tokens.resize(id + 1);
      spec.ranks.resize(id + 1, Merge::never);
    }
    spec.tokens[id] = to_symbols(found.token);
    spec.ranks[id] = found.token.size() > 1 ? static_cast<uint32_t>(id) : Merge::never;
  }
  check(!spec.tokens.empty(), ErrorKind::format, path.string(), ": the file holds no token");
  for (const auto& [token, id] : encoding.special) {
    spec.added.push_back({.id = id, .content = token, .special = true});
    spec.eos = token == "<|endoftext|>" || token == "<|end_of_text|>" ? id : spec.eos;
    spec.bos = token == "<|begin_of_text|>" ? id : spec.bos;
  }
  const nlohmann::json split = {{"type", "Split"},
                                {"pattern", {{"Regex", encoding.pattern}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
  const nlohmann::json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  spec.pre_tokenizer =
      nlohmann::json({{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}).dump();
  spec.decoder = R"({"type":"ByteLevel"})";
  return spec;
}

TiktokenEncoding encoding_beside(const std::filesystem::path& path) {
  const std::string name = path.stem().string();
  const std::filesystem::path meta = path.parent_path() / (name + ".meta.json");
  if (file_exists(meta)) {
    return from_meta(meta);
  }
  if (const auto known = tiktoken_encoding(name)) {
    return *known;
  }
  const std::string text = read_file(path);
  const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
  check(lines == 128000, ErrorKind::config, path.string(),
        ": a rank file does not say how text is cut, and neither does its name: name it after its "
        "encoding (cl100k_base.tiktoken), or put ",
        meta.filename().string(), " with pat_str and special_tokens beside it");
  return llama3();
}

}  // namespace ingot
