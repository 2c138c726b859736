#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ingot/generate/token_filter.h"
#include "ingot/text/byte_automaton.h"

namespace ingot {

// Keeps a text to a regular expression: a token may come next if its bytes lead the automaton to a
// state from which a match can still be reached, a stop token where the text is a match. Willard
// and Louf 2023, arXiv:2307.09702, algorithm 4; which tokens a state allows is found when a text
// first gets there, and kept. Tokens without bytes never come.
class AutomatonFilter : public TokenFilter {
 public:
  // `bytes` of each token of the vocabulary; empty for tokens that are no text.
  AutomatonFilter(ByteAutomaton automaton, std::vector<std::string> bytes,
                  std::vector<int64_t> stop_tokens);

  void apply(std::span<float> logits) const override;
  void accept(int64_t token) override;
  bool complete() const override;
  std::unique_ptr<TokenFilter> copy() const override;

 private:
  // What all texts under one expression share, draws in parallel too.
  struct Shared {
    std::mutex mutex;
    ByteAutomaton automaton;
    std::vector<std::string> bytes;
    std::vector<int64_t> stop_tokens;
    std::map<ByteAutomaton::State, std::vector<bool>> allowed;
  };
  const std::vector<bool>& allowed() const;  // under the mutex

  std::shared_ptr<Shared> shared_;
  ByteAutomaton::State state_;
  bool stopped_ = false;
};

}  // namespace ingot
