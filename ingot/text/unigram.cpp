#include "ingot/text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "ingot/base/error.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr double unknown_penalty = 10;  // below the least score, in SentencePiece and its followers

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& tokens, const std::vector<double>& scores,
                           UnigramSettings settings)
    : settings_(settings), scores_(scores) {
  double least = 0;
  bool any = false;
  for (size_t i = 0; i < scores_.size(); ++i) {
    const std::string_view text = tokens.text(static_cast<TokenId>(i));
    if (!std::isnan(scores_[i]) && !text.empty()) {
      least = any ? std::min(least, scores_[i]) : scores_[i];
      any = true;
      trie_.add(text, static_cast<TokenId>(i));
    }
  }
  unknown_score_ = sum(least, -unknown_penalty);
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_.push_back(tokens.find(fmt::format("<0x{:02X}>", byte)));
  }
  settings_.byte_fallback = settings_.byte_fallback && std::find(byte_ids_.begin(), byte_ids_.end(),
                                                                 no_token) == byte_ids_.end();
}

double UnigramModel::sum(double a, double b) const {
  return settings_.single_precision
             ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b))
             : a + b;
}

template <class Each>
void UnigramModel::for_each_token(std::string_view word, size_t begin, const Each& each) const {
  const size_t character = utf8_char(word.data() + begin).bytes;
  bool single = false;
  ByteTrie::Node node = ByteTrie::root;
  for (size_t at = begin; at < word.size(); ++at) {
    node = trie_.step(node, word[at]);
    if (node == ByteTrie::nowhere) {
      break;
    }
    if (const TokenId id = trie_.value(node); id != no_token) {
      each(at + 1, id, scores_[static_cast<size_t>(id)]);
      single = single || at + 1 == begin + character;
    }
  }
  if (!single) {
    each(begin + character, settings_.unknown, unknown_score_);
  }
}

// The best path to every place of the word that a character ends at.
std::vector<UnigramModel::Node> UnigramModel::paths(std::string_view word) const {
  std::vector<Node> nodes(word.size() + 1);
  nodes[0].reached = true;
  for (size_t begin = 0; begin < word.size(); begin += utf8_char(word.data() + begin).bytes) {
    const double before = nodes[begin].score;
    for_each_token(word, begin, [&](size_t end, TokenId id, double score) {
      // SentencePiece keeps sums in single precision and compares one of double with them, which
      // decides between segmentations that are equally likely.
      const bool is_unknown = id == settings_.unknown;
      const double total = is_unknown ? sum(score, before) : score + before;
      if (!nodes[end].reached || total > nodes[end].score) {
        nodes[end] = {sum(total, 0), begin, id, true};
      }
    });
  }
  return nodes;
}

void UnigramModel::encode(const Vocabulary& tokens, std::string_view word,
                          std::vector<TokenId>& out) const {
  const std::vector<Node> nodes = paths(word);
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  // Backwards, unknown neighbours as one.
  for (size_t end = word.size(); end > 0;) {
    const Node& node = nodes[end];
    size_t begin = node.begin;
    if (node.id != settings_.unknown || settings_.unknown == no_token) {
      if (node.id != no_token) {
        out.push_back(node.id);
      }
    } else {
      while (begin > 0 && nodes[begin].id == settings_.unknown) {
        begin = nodes[begin].begin;
      }
      const std::string_view text = word.substr(begin, end - begin);
      const TokenId whole = tokens.find(text);
      if (whole != no_token && !std::isnan(scores_[static_cast<size_t>(whole)])) {
        out.push_back(whole);  // what stood apart as unknown is a token together
      } else {
        emit_unknown(text, out);
      }
    }
    end = begin;
  }
  std::reverse(out.begin() + first, out.end());
}

// In reverse, as encode() goes.
void UnigramModel::emit_unknown(std::string_view text, std::vector<TokenId>& out) const {
  if (!settings_.byte_fallback) {
    out.push_back(settings_.unknown);
    return;
  }
  for (auto byte = text.rbegin(); byte != text.rend(); ++byte) {
    out.push_back(byte_ids_[static_cast<uint8_t>(*byte)]);
  }
}

std::vector<std::vector<TokenId>> UnigramModel::best(std::string_view word, int64_t n) const {
  const std::vector<Node> nodes = paths(word);
  struct Edge {
    size_t begin;
    TokenId id;
    double score;
  };
  std::vector<std::vector<Edge>> ending(word.size() + 1);
  for (size_t begin = 0; begin < word.size(); begin += utf8_char(word.data() + begin).bytes) {
    for_each_token(word, begin, [&](size_t end, TokenId id, double score) {
      ending[end].push_back({begin, id, score});
    });
  }
  // A partial path covers [begin, end of word): its score, and the best that can come before it.
  struct Partial {
    double bound;
    double score;
    size_t begin;
    size_t number;  // of the partial path it extends
    TokenId id;
  };
  const auto worse = [](const Partial& a, const Partial& b) { return a.bound < b.bound; };
  std::priority_queue<Partial, std::vector<Partial>, decltype(worse)> agenda(worse);
  constexpr size_t none = SIZE_MAX;
  std::vector<Partial> kept;
  std::vector<std::vector<TokenId>> out;
  agenda.push({nodes[word.size()].score, 0, word.size(), none, no_token});
  while (!agenda.empty() && static_cast<int64_t>(out.size()) < n) {
    const Partial top = agenda.top();
    agenda.pop();
    const size_t number = kept.size();
    kept.push_back(top);
    if (top.begin == 0) {
      std::vector<TokenId> ids;
      for (size_t i = number; kept[i].number != none; i = kept[i].number) {
        const bool fused = !ids.empty() && ids.back() == settings_.unknown;
        if (kept[i].id != settings_.unknown || !fused) {
          ids.push_back(kept[i].id);
        }
      }
      out.push_back(std::move(ids));
      continue;
    }
    for (const Edge& edge : ending[top.begin]) {
      const double score = sum(edge.score, top.score);
      agenda.push({sum(nodes[edge.begin].score, score), score, edge.begin, number, edge.id});
    }
  }
  return out;
}

}  // namespace ingot
