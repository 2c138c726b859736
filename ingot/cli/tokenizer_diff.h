#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ingot/text/tokenizer.h"

namespace ingot {

// What `ingot tokenizer inspect` prints.
std::string inspected_text(const Tokenizer& tokenizer);
std::string inspected_json(const Tokenizer& tokenizer);

// Where two tokenizers differ.
struct TokenizerDiff {
  struct Moved {
    std::string token;
    TokenId a;
    TokenId b;
  };
  struct Part {  // a setting or component: its name, and what it is in each
    std::string name;
    std::string a;
    std::string b;
  };
  std::vector<std::pair<std::string, TokenId>> only_a;  // tokens that the other has not
  std::vector<std::pair<std::string, TokenId>> only_b;
  std::vector<Moved> moved;  // tokens with two ids
  std::vector<Part> parts;

  bool equal() const { return only_a.empty() && only_b.empty() && moved.empty() && parts.empty(); }
};

TokenizerDiff diff_tokenizers(const Tokenizer& a, const Tokenizer& b);
std::string diff_text(const TokenizerDiff& diff, int64_t limit);  // limit 0: all tokens
std::string diff_json(const TokenizerDiff& diff);

}  // namespace ingot
