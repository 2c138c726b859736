#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ingot/cli/encoder_recipe.h"
#include "ingot/text/tokenizer.h"

namespace ingot {

// How an encoder's texts are tokens: a tokenizer's, or bytes with four tokens of their own.
struct EncoderTokens {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: bytes
  int64_t mask = 256;
  int64_t padding = 259;
  std::vector<int64_t> before = {257}, after = {258};  // a text: [CLS] and [SEP]
  int64_t vocab = 260;

  // A text of at most `longest` tokens with what stands around it.
  std::vector<int64_t> framed(std::string_view text, int64_t longest) const;
  std::vector<int64_t> special() const;  // neither hidden nor drawn
};

// What a run of an encoder reads. Batches have rows of train.sequence tokens, padded; of "embed"
// the second half of the rows belongs to the first, of "classify" labels are [B], of "mlm" what
// masked_batch makes.
struct EncoderData {
  EncoderTokens tokens;
  std::function<Batch(int64_t position)> batch;
  std::function<Batch(int64_t index)> validation;
  int64_t validation_batches = 0;
  int64_t rows = 0;
  int64_t validation_rows = 0;
  std::vector<std::string> labels;  // of "classify", sorted
  std::string hash;
};

// Throws Error(config) where the vocabulary of the model is too small, the tokenizer has no mask
// token, or nothing is held out; the errors of the readers.
EncoderData open_encoder_data(const EncoderRecipe& recipe);

// How many tokens of each row come before the padding: [B] i32.
Tensor lengths_of(const Tensor& ids, int64_t padding);

}  // namespace ingot
