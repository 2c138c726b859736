#include "ingot/text/train_bpe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/text/added_tokens.h"
#include "ingot/text/bpe_merging.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

std::string pre_tokenizer_json(const std::string& pattern) {
  if (pattern.empty() || pattern == gpt2_regex) {
    return R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  }
  using Json = nlohmann::json;
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return Json({{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}).dump();
}

std::array<bool, 256> bytes_in(const WordCounts& words) {
  std::array<bool, 256> present{};
  for (size_t w = 0; w < words.size(); ++w) {
    for (const char byte : words.word(w)) {
      present[static_cast<uint8_t>(byte)] = true;
    }
  }
  return present;
}

}  // namespace

BpeTrainer::BpeTrainer(BpeTraining settings)
    : settings_(std::move(settings)),
      pre_tokenizer_(pre_tokenizer_json(settings_.pattern)),
      cuts_(pre_tokenizer_, "pattern") {}

void BpeTrainer::add(std::string_view text) {
  std::vector<AddedToken> special;
  for (const std::string& content : settings_.special) {
    special.push_back({.id = static_cast<TokenId>(special.size()), .content = content});
  }
  const AddedTokens cutter(special, Normalizer("null", "train"));
  while (!text.empty()) {
    const size_t good = valid_utf8_prefix(text);
    cutter.cut(
        text.substr(0, good), AddedTokens::Stage::raw, true,
        [&](std::string_view part) { count_words(cuts_, part, words_); }, [](TokenId) {});
    text.remove_prefix(good);
    if (!text.empty()) {
      const size_t bad = ill_formed_bytes(text);
      words_.add(text.substr(0, bad));
      text.remove_prefix(bad);
    }
  }
}

TrainedBpe BpeTrainer::train(const std::function<bool(int64_t)>& progress) const {
  check(words_.size() > 0, ErrorKind::format, "tokenizer training: the text holds no word");
  std::vector<std::string> tokens;  // as bytes
  TrainedBpe out;
  TokenizerSpec& spec = out.tokenizer;
  spec.source = "trained";
  for (const std::string& content : settings_.special) {
    spec.added.push_back(
        {.id = static_cast<TokenId>(tokens.size()), .content = content, .special = true});
    tokens.push_back(content);
  }
  const std::array<bool, 256> present = bytes_in(words_);
  std::array<TokenId, 256> byte_ids{};
  std::string order = bytes_by_symbol();
  if (!settings_.bytes_by_symbol) {
    std::sort(order.begin(), order.end(),
              [](char a, char b) { return static_cast<uint8_t>(a) < static_cast<uint8_t>(b); });
  }
  for (const char byte : order) {
    if (settings_.all_bytes || present[static_cast<uint8_t>(byte)]) {
      byte_ids[static_cast<uint8_t>(byte)] = static_cast<TokenId>(tokens.size());
      tokens.emplace_back(1, byte);
    }
  }
  const auto first_merged = static_cast<int64_t>(tokens.size());
  check(settings_.vocabulary >= first_merged, ErrorKind::config,
        "tokenizer training: the vocabulary is too small: it has ", settings_.vocabulary,
        " tokens, special tokens and bytes alone are ", first_merged);
  // A special token is no text: what spells it is another token.
  for (size_t i = 0; i < settings_.special.size(); ++i) {
    tokens[i].clear();
  }
  BpeMerging merging(words_, byte_ids, std::move(tokens), settings_.ties);
  while (static_cast<int64_t>(merging.tokens().size()) < settings_.vocabulary) {
    const auto made = merging.merge(std::max<int64_t>(1, settings_.least_count));
    const auto count = static_cast<int64_t>(merging.tokens().size());
    if (!made || (progress && count % 64 == 0 && !progress(count))) {
      break;
    }
    spec.merges.push_back(made->rule);
    out.merge_counts.push_back(made->count);
  }
  for (size_t i = 0; i < merging.tokens().size(); ++i) {
    spec.tokens.push_back(i < settings_.special.size() ? settings_.special[i]
                                                       : to_symbols(merging.tokens()[i]));
  }
  spec.pre_tokenizer = pre_tokenizer_;
  spec.decoder =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  return out;
}

}  // namespace ingot
