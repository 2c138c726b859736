#include "ingot/cli/tokenizer_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;
using NamedParts = std::vector<std::pair<std::string, std::string>>;

std::string dumped(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A token as it can be shown on a line.
std::string quoted(const std::string& token) {
  return Json(token).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string id_text(const std::optional<TokenId>& id) { return id ? std::to_string(*id) : "none"; }

const char* yes(bool value) { return value ? "yes" : "no"; }

std::string flags_of(const AddedToken& token) {
  std::string out;
  const std::pair<bool, const char*> flags[] = {{token.special, "special"},
                                                {token.single_word, "single_word"},
                                                {token.lstrip, "lstrip"},
                                                {token.rstrip, "rstrip"},
                                                {token.normalized, "normalized"}};
  for (const auto& [set, name] : flags) {
    if (set) {
      out += out.empty() ? "" : " ";
      out += name;
    }
  }
  return out.empty() ? "no flags" : out;
}

// Everything but the tokens that decides ids.
NamedParts parts_of(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  NamedParts out = {{"model", std::string(name(spec.model))},
                    {"vocabulary", std::to_string(tokenizer.vocabulary_size())},
                    {"bos", id_text(tokenizer.bos())},
                    {"eos", id_text(tokenizer.eos())},
                    {"pad", id_text(tokenizer.pad())},
                    {"unknown", id_text(tokenizer.unknown())},
                    {"byte fallback", yes(spec.byte_fallback)},
                    {"ignore merges", yes(spec.ignore_merges)},
                    {"fuse unknown", yes(spec.fuse_unknown)},
                    {"continuing prefix", spec.continuing_prefix},
                    {"end suffix", spec.end_suffix},
                    {"normalizer", spec.normalizer},
                    {"pre_tokenizer", spec.pre_tokenizer},
                    {"post_processor", spec.post_processor},
                    {"decoder", spec.decoder}};
  return out;
}

std::map<std::string, TokenId> ids_of(const Tokenizer& tokenizer) {
  std::map<std::string, TokenId> out;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string token = tokenizer.token(static_cast<TokenId>(id));
    if (!token.empty()) {
      out.emplace(token, static_cast<TokenId>(id));
    }
  }
  return out;
}

std::string spelled(const Tokenizer& tokenizer, const MergeRule& merge) {
  return quoted(tokenizer.token(merge.left)) + " + " + quoted(tokenizer.token(merge.right));
}

// The first merge in which two lists differ, by the tokens' spellings.
void compare_merges(const Tokenizer& a, const Tokenizer& b, TokenizerDiff& out) {
  const auto& left = a.spec().merges;
  const auto& right = b.spec().merges;
  if (left.size() != right.size()) {
    out.parts.push_back({"merges", std::to_string(left.size()), std::to_string(right.size())});
  }
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const std::string x = spelled(a, left[i]);
    const std::string y = spelled(b, right[i]);
    if (x != y) {
      out.parts.push_back({fmt::format("merge {}, the first that differs", i), x, y});
      return;
    }
  }
}

void compare_added(const Tokenizer& a, const Tokenizer& b, TokenizerDiff& out) {
  std::map<std::string, std::string> flags[2];
  const Tokenizer* const both[2] = {&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    for (const AddedToken& token : both[i]->spec().added) {
      flags[i][token.content] = flags_of(token);
      flags[1 - i].try_emplace(token.content, "not an added token");
    }
  }
  for (const auto& [token, of_a] : flags[0]) {
    if (of_a != flags[1][token]) {
      out.parts.push_back({"added token " + quoted(token), of_a, flags[1][token]});
    }
  }
}

void list_tokens(std::string& out, const char* title,
                 const std::vector<std::pair<std::string, TokenId>>& tokens, int64_t limit) {
  if (tokens.empty()) {
    return;
  }
  out += fmt::format("{}: {}\n", title, tokens.size());
  const auto many = static_cast<size_t>(limit > 0 ? limit : INT64_MAX);
  for (size_t i = 0; i < std::min(many, tokens.size()); ++i) {
    out += fmt::format("  {:>8}  {}\n", tokens[i].second, quoted(tokens[i].first));
  }
  if (tokens.size() > many) {
    out += fmt::format("  … and {} more\n", tokens.size() - many);
  }
}

void sort_by_id(std::vector<std::pair<std::string, TokenId>>& tokens) {
  std::sort(tokens.begin(), tokens.end(),
            [](const auto& x, const auto& y) { return x.second < y.second; });
}

}  // namespace

std::string inspected_text(const Tokenizer& tokenizer) {
  std::string out = fmt::format("{}\n", tokenizer.spec().source);
  for (const auto& [name, value] : parts_of(tokenizer)) {
    out += value.empty() ? "" : fmt::format("  {:<18} {}\n", name, value.substr(0, 400));
  }
  out += fmt::format("  {:<18} {}\n  {:<18} {}\n", "merges", tokenizer.spec().merges.size(), "hash",
                     tokenizer.hash());
  out += fmt::format("added tokens: {}\n", tokenizer.spec().added.size());
  for (const AddedToken& token : tokenizer.spec().added) {
    out += fmt::format("  {:>8}  {}  {}\n", token.id, quoted(token.content), flags_of(token));
  }
  return out;
}

std::string inspected_json(const Tokenizer& tokenizer) {
  Json out = {{"source", tokenizer.spec().source}, {"hash", tokenizer.hash()}};
  for (const auto& [name, value] : parts_of(tokenizer)) {
    out[name] = value;
  }
  out["merges"] = tokenizer.spec().merges.size();
  out["added"] = Json::array();
  for (const AddedToken& token : tokenizer.spec().added) {
    out["added"].push_back(
        {{"id", token.id}, {"token", token.content}, {"flags", flags_of(token)}});
  }
  return dumped(out);
}

TokenizerDiff diff_tokenizers(const Tokenizer& a, const Tokenizer& b) {
  TokenizerDiff out;
  const std::map<std::string, TokenId> in_a = ids_of(a);
  const std::map<std::string, TokenId> in_b = ids_of(b);
  for (const auto& [token, id] : in_a) {
    const auto other = in_b.find(token);
    if (other == in_b.end()) {
      out.only_a.emplace_back(token, id);
    } else if (other->second != id) {
      out.moved.push_back({token, id, other->second});
    }
  }
  for (const auto& [token, id] : in_b) {
    if (!in_a.contains(token)) {
      out.only_b.emplace_back(token, id);
    }
  }
  sort_by_id(out.only_a);
  sort_by_id(out.only_b);
  std::sort(out.moved.begin(), out.moved.end(),
            [](const auto& x, const auto& y) { return x.a < y.a; });
  const NamedParts parts_a = parts_of(a);
  const NamedParts parts_b = parts_of(b);
  for (size_t i = 0; i < parts_a.size(); ++i) {
    if (parts_a[i] != parts_b[i]) {
      out.parts.push_back({parts_a[i].first, parts_a[i].second, parts_b[i].second});
    }
  }
  compare_merges(a, b, out);
  compare_added(a, b, out);
  return out;
}

std::string diff_text(const TokenizerDiff& diff, int64_t limit) {
  if (diff.equal()) {
    return "equal: the same tokens, ids, merges and components\n";
  }
  std::string out;
  for (const TokenizerDiff::Part& part : diff.parts) {
    out += fmt::format("{}\n  a  {}\n  b  {}\n", part.name, part.a, part.b);
  }
  list_tokens(out, "tokens only in a", diff.only_a, limit);
  list_tokens(out, "tokens only in b", diff.only_b, limit);
  if (!diff.moved.empty()) {
    out += fmt::format("tokens with two ids: {}\n", diff.moved.size());
    const auto many = static_cast<size_t>(limit > 0 ? limit : INT64_MAX);
    for (size_t i = 0; i < std::min(many, diff.moved.size()); ++i) {
      const TokenizerDiff::Moved& token = diff.moved[i];
      out += fmt::format("  a {:>8}  b {:>8}  {}\n", token.a, token.b, quoted(token.token));
    }
    if (diff.moved.size() > many) {
      out += fmt::format("  … and {} more\n", diff.moved.size() - many);
    }
  }
  return out;
}

std::string diff_json(const TokenizerDiff& diff) {
  Json out = {{"equal", diff.equal()}};
  for (const auto& [key, tokens] :
       {std::pair("only_a", &diff.only_a), std::pair("only_b", &diff.only_b)}) {
    out[key] = Json::array();
    for (const auto& [token, id] : *tokens) {
      out[key].push_back({{"token", token}, {"id", id}});
    }
  }
  out["moved"] = Json::array();
  for (const TokenizerDiff::Moved& token : diff.moved) {
    out["moved"].push_back({{"token", token.token}, {"a", token.a}, {"b", token.b}});
  }
  out["parts"] = Json::array();
  for (const TokenizerDiff::Part& part : diff.parts) {
    out["parts"].push_back({{"name", part.name}, {"a", part.a}, {"b", part.b}});
  }
  return dumped(out);
}

}  // namespace ingot
