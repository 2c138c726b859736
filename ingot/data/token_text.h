#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/data/text.h"
#include "ingot/text/tokenizer.h"

namespace ingot {

// Text as the tokens of a tokenizer, in memory: 4 bytes a token. What is trained on and what is
// held out is decided in bytes, as for Text, moved to the next whole character; each stretch of a
// file is encoded by itself.
class TokenText {
 public:
  TokenText(const Text& text, const Tokenizer& tokenizer);

  // As Text::training() and Text::validation(), counted in tokens.
  std::shared_ptr<const Dataset<TokenWindow>> training(int64_t T, uint64_t seed) const;
  std::shared_ptr<const Dataset<TokenWindow>> validation(int64_t T) const;

  int64_t training_tokens() const { return training_tokens_; }
  int64_t validation_targets() const { return validation_targets_; }
  int64_t validation_bytes() const { return validation_bytes_; }  // that the targets spell

 private:
  using Ids = std::vector<TokenId>;
  struct Held {
    std::vector<Ids> training;
    std::vector<Ids> validation;  // each with one token of context in front
  };

  std::shared_ptr<const Held> held_;
  int64_t training_tokens_ = 0;
  int64_t validation_targets_ = 0;
  int64_t validation_bytes_ = 0;
};

}  // namespace ingot
