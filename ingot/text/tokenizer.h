#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingot/text/added_tokens.h"
#include "ingot/text/bpe.h"
#include "ingot/text/normalizer.h"
#include "ingot/text/post_processor.h"
#include "ingot/text/pre_tokenizer.h"
#include "ingot/text/token_decoder.h"
#include "ingot/text/tokenizer_spec.h"
#include "ingot/text/unigram.h"
#include "ingot/text/wordpiece.h"

namespace ingot {

using TokenIds = std::vector<TokenId>;

struct EncodeOptions {
  bool add_special = false;    // the tokens that the model wants around a text, as <s>
  bool parse_special = false;  // special tokens spelled in the text are these tokens, not text
};

struct DecodeOptions {
  bool skip_special = true;
};

// Text to token ids and back:
//   added tokens are cut out → normalizer → pre-tokenizer cuts words → model → special tokens
//   around
// It does not change after it is made and may be used by many threads at once.
//
// Texts are UTF-8. Ill-formed bytes never fail: a byte-level tokenizer encodes them as bytes, so
// that decode_bytes() gives them back; any other reads U+FFFD in their place.
class Tokenizer {
 public:
  // Throws Error(format) naming the file and what is wrong in it.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  TokenIds encode(std::string_view text, EncodeOptions options = {}) const;
  // The same, in parts as they become known, so that a large text's ids need not be held.
  void encode(std::string_view text, EncodeOptions options,
              const std::function<void(std::span<const TokenId>)>& sink) const;

  // Ids without a token are left out. U+FFFD stands where bytes make no character.
  std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;
  // The bytes themselves, for byte-level tokenizers; decode() for others.
  std::string decode_bytes(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // One more than the largest id.
  int64_t vocabulary_size() const { return vocabulary_size_; }
  // A token as its file spells it ("Ġthe", "▁the", "##s"); empty where there is none.
  std::string token(TokenId id) const;
  std::optional<TokenId> id_of(std::string_view token) const;
  bool is_special(TokenId id) const;
  std::optional<TokenId> bos() const { return spec_.bos; }
  std::optional<TokenId> eos() const { return spec_.eos; }
  std::optional<TokenId> pad() const { return spec_.pad; }
  std::optional<TokenId> unknown() const;
  const Frame& frame() const { return frame_; }  // what add_special adds
  bool is_byte_level() const { return decoder_->only_bytes(); }

  const TokenizerSpec& spec() const { return spec_; }
  const std::string& hash() const { return hash_; }  // hash_of(spec())
  // The n likeliest segmentations of a text, best first; of Unigram tokenizers only.
  std::vector<TokenIds> best_segmentations(std::string_view text, int64_t n) const;

  const TokenDecoder& decoder() const { return *decoder_; }

 private:
  struct Work;  // what one call of encode() needs
  using Model = std::variant<BpeModel, UnigramModel, WordPieceModel, WordLevelModel>;

  Model made_model() const;
  std::vector<std::string> model_tokens() const;
  void encode_valid(std::string_view text, bool first, const EncodeOptions& options,
                    Work& work) const;
  void encode_section(std::string_view text, bool first, const EncodeOptions& options,
                      Work& work) const;
  void encode_normalized(std::string_view text, bool first, Work& work) const;
  void encode_word(std::string_view word, Work& work) const;
  std::vector<std::string> spelled(std::span<const TokenId> ids, DecodeOptions options) const;

  TokenizerSpec spec_;
  std::string hash_;
  int64_t vocabulary_size_ = 0;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<TokenDecoder> decoder_;
  Frame frame_;
  AddedTokens added_;
  bool bytes_ = false;     // words reach the model as bytes
  Vocabulary vocabulary_;  // as the model sees the tokens
  Vocabulary spellings_;   // as the file spells them
  std::unique_ptr<Model> model_;
  mutable std::atomic<Work*> idle_ = nullptr;  // kept for the next call, with its cache of words
};

}  // namespace ingot
