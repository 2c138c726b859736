#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/tokenizer_json.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Components that only Ingot's readers of other formats make.
bool is_own(const std::string& component) {
  return component.find("\"SentencePiece\"") != std::string::npos ||
         component.find("\"Gguf") != std::string::npos;
}

Json parsed(const TokenizerSpec& spec, const std::string& component, const char* key) {
  check(!is_own(component), ErrorKind::format, spec.source, ": its ", key,
        " has no equal in tokenizer.json: ", component.substr(0, 100));
  return Json::parse(component);
}

Json vocabulary_of(const TokenizerSpec& spec) {
  Json out = Json::object();
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!spec.tokens[id].empty()) {
      out[spec.tokens[id]] = id;
    }
  }
  return out;
}

// All splits of tokens that have ranks, as a list in the order of the ranks.
Json merges_of(const TokenizerSpec& spec) {
  Json out = Json::array();
  if (spec.ranks.empty()) {
    for (const MergeRule& merge : spec.merges) {
      const auto spelling = [&](TokenId id) { return spec.tokens[static_cast<size_t>(id)]; };
      out.push_back({spelling(merge.left), spelling(merge.right)});
    }
    return out;
  }
  const Vocabulary tokens(spec.tokens);
  std::vector<size_t> order;
  for (size_t id = 0; id < spec.ranks.size(); ++id) {
    if (spec.ranks[id] != Merge::never) {
      order.push_back(id);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return spec.ranks[a] < spec.ranks[b]; });
  for (const size_t id : order) {
    const std::string& text = spec.tokens[id];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const bool between = (static_cast<uint8_t>(text[cut]) & 0xC0) != 0x80;
      if (between && tokens.find(text.substr(0, cut)) != no_token &&
          tokens.find(text.substr(cut)) != no_token) {
        out.push_back({text.substr(0, cut), text.substr(cut)});
      }
    }
  }
  return out;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json model_of(const TokenizerSpec& spec) {
  const Json unknown =
      spec.unknown == no_token ? Json() : Json(spec.tokens[static_cast<size_t>(spec.unknown)]);
  Json out;
  out["type"] = name(spec.model);
  switch (spec.model) {
    case TokenizerSpec::Model::bpe:
      out["dropout"] = nullptr;
      out["unk_token"] = unknown;
      out["continuing_subword_prefix"] = text_or_null(spec.continuing_prefix);
      out["end_of_word_suffix"] = text_or_null(spec.end_suffix);
      out["fuse_unk"] = spec.fuse_unknown;
      out["byte_fallback"] = spec.byte_fallback;
      out["ignore_merges"] = spec.ignore_merges;
      out["vocab"] = vocabulary_of(spec);
      out["merges"] = merges_of(spec);
      break;
    case TokenizerSpec::Model::unigram: {
      out["unk_id"] = spec.unknown == no_token ? Json() : Json(spec.unknown);
      out["vocab"] = Json::array();
      for (size_t id = 0; id < spec.tokens.size(); ++id) {
        out["vocab"].push_back(
            {spec.tokens[id], std::isnan(spec.scores[id]) ? 0.0 : spec.scores[id]});
      }
      out["byte_fallback"] = spec.byte_fallback;
      break;
    }
    case TokenizerSpec::Model::wordpiece:
      out["unk_token"] = unknown;
      out["continuing_subword_prefix"] = spec.continuing_prefix;
      out["max_input_chars_per_word"] = spec.longest_word;
      out["vocab"] = vocabulary_of(spec);
      break;
    case TokenizerSpec::Model::wordlevel:
      out["vocab"] = vocabulary_of(spec);
      out["unk_token"] = unknown;
      break;
  }
  return out;
}

}  // namespace

std::string to_tokenizer_json(const TokenizerSpec& spec) {
  Json out;
  out["version"] = "1.0";
  out["truncation"] = nullptr;
  out["padding"] = nullptr;
  out["added_tokens"] = Json::array();
  for (const AddedToken& token : spec.added) {
    out["added_tokens"].push_back({{"id", token.id},
                                   {"content", token.content},
                                   {"single_word", token.single_word},
                                   {"lstrip", token.lstrip},
                                   {"rstrip", token.rstrip},
                                   {"normalized", token.normalized},
                                   {"special", token.special}});
  }
  out["normalizer"] = parsed(spec, spec.normalizer, "normalizer");
  out["pre_tokenizer"] = parsed(spec, spec.pre_tokenizer, "pre_tokenizer");
  out["post_processor"] = parsed(spec, spec.post_processor, "post_processor");
  out["decoder"] = parsed(spec, spec.decoder, "decoder");
  out["model"] = model_of(spec);
  return out.dump(1) + "\n";
}

}  // namespace ingot
