#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingot/data/example.h"
#include "ingot/data/row_fault.h"
#include "ingot/text/chat_mask.h"
#include "ingot/text/tokenizer.h"

namespace ingot {

// A text as tokens, and which of them are learnt: the loss of predicting token t counts where
// learnt[t] is 1.
struct TokenRow {
  TokenIds ids;
  std::vector<uint8_t> learnt;

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  int64_t targets() const;  // learnt tokens that have one before them
};

enum class Learn : uint8_t {
  answers,  // the turns of the learnt roles, or what a message says of itself; the completion
  all,      // every token
};

// Documents turned inside out, so that the model learns to fill in a middle (data/fim.h).
struct FimOptions {
  double rate = 0;        // share of the documents
  double spm_rate = 0.5;  // of these in the order spm_v2, the others in psm
  uint64_t seed = 0;
  std::array<TokenId, 3> tokens = {no_token, no_token, no_token};  // prefix, suffix, middle
};
// The three tokens under the names that models have given them ("<|fim_prefix|>", "<fim_prefix>",
// "<PRE>"); throws Error(config) where the tokenizer has none of these.
std::array<TokenId, 3> fim_tokens(const Tokenizer& tokenizer);

struct RenderOptions {
  Learn learn = Learn::answers;
  std::vector<std::string> roles = {"assistant"};
  bool end_text = true;    // the tokenizer's end of text behind documents and plain completions
  bool begin_text = true;  // before them what the tokenizer wants before a text
  FimOptions fim;
};

// Turns examples into token rows:
//   text   the document between the tokens that begin and end a text; all of it is learnt
//   chat   what the template makes of it, a row for each text of chat_mask.h; learnt are the
//          answers with the token that ends them. A conversation joined as it is (`plain`) is
//          prompt, completion and the end of text, without a template
// It does not change and may be used by many threads at once.
class Renderer {
 public:
  // Without a template only texts and plain conversations can be rendered. Throws Error(config)
  // where the tokenizer has no end-of-text token and `end_text` asks for one.
  Renderer(std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const ChatTemplate> chat,
           RenderOptions options);

  // Throws RowError(rendering) or RowError(untrained) that begins with the row's place;
  // Error(config) for a chat without a template.
  std::vector<TokenRow> operator()(const Example& example) const;
  // The same as text, for people: what is learnt is marked.
  std::vector<TrainingText> texts(const Example& example) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate* chat() const { return chat_.get(); }
  // XXH3-128 of the template, its tokens and the options: with the tokenizer's hash, what rows
  // depend on.
  std::string hash() const;

 private:
  std::vector<TrainingText> chat_texts(const Example& example) const;
  TokenRow joined(const Example& example) const;
  void append_document(const Example& example, TokenRow& row) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_;
  RenderOptions options_;
};

// The ids of a rendered text as training and inference see it: before each learnt span the ids are
// those of the text up to there, as inference computes them for a prompt.
TokenRow tokens_of(const TrainingText& text, const Tokenizer& tokenizer);

// A row as text, what is learnt green or between « and ».
std::string shown(const TokenRow& row, const Tokenizer& tokenizer, Colours colours);

}  // namespace ingot
