#pragma once

#include <string_view>
#include <vector>

#include "ingot/text/byte_trie.h"
#include "ingot/text/vocabulary.h"

namespace ingot {

// The unigram language model: a word becomes the tokens whose scores (log-probabilities) have the
// largest sum. Kudo 2018, Subword regularization (arXiv 1804.10959), section 3.2.

struct UnigramSettings {
  TokenId unknown = no_token;     // for characters without a token; neighbours make one
  bool byte_fallback = false;     // such characters become the tokens of their bytes
  bool single_precision = false;  // sums in f32, as SentencePiece's
};

class UnigramModel {
 public:
  // A score for every token; tokens with a NaN score are no text and not used (control tokens).
  UnigramModel(const Vocabulary& tokens, const std::vector<double>& scores,
               UnigramSettings settings);

  // Appends the tokens of a word by Viterbi's algorithm; linear for tokens of bounded length.
  void encode(const Vocabulary& tokens, std::string_view word, std::vector<TokenId>& out) const;

  // The n segmentations with the largest sums, best first (an A* search from the end over the exact
  // scores of all beginnings), fewer where there are fewer.
  std::vector<std::vector<TokenId>> best(std::string_view word, int64_t n) const;

 private:
  struct Node {
    double score = 0;
    size_t begin = 0;
    TokenId id = no_token;
    bool reached = false;
  };
  // Calls each(end, id, score) for every token that begins at `begin`, unknown included.
  template <class Each>
  void for_each_token(std::string_view word, size_t begin, const Each& each) const;
  std::vector<Node> paths(std::string_view word) const;
  double sum(double a, double b) const;
  void emit_unknown(std::string_view text, std::vector<TokenId>& out) const;

  UnigramSettings settings_;
  std::vector<double> scores_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  std::vector<TokenId> byte_ids_;
};

}  // namespace ingot
