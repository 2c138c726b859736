#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ingot/generate/generate.h"
#include "ingot/models/stored_model.h"
#include "ingot/text/stream_decoder.h"
#include "ingot/text/tokenizer.h"

namespace ingot {

// How a model's tokens are text: bytes, or a tokenizer's.
class TextCodec {
 public:
  TextCodec() = default;  // bytes: token i < 256 is the byte i; other tokens have no text
  explicit TextCodec(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null for bytes

  // What generation starts from: never empty, with the tokens that the model wants before a text.
  Tokens prompt(std::string_view text, EncodeOptions options = {.add_special = true}) const;
  // A text's own tokens and no others.
  Tokens plain(std::string_view text) const;
  std::string text(std::span<const int64_t> tokens) const;
  // The bytes of one token, as it stands within a text; of special tokens their spelling.
  std::string bytes_of(int64_t token) const;
  // Tokens that end a text: the tokenizer's end of sequence.
  std::vector<int64_t> stops() const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// Writes tokens as they come, whole characters at a time; U+FFFD where bytes make no character.
class CodecStream {
 public:
  explicit CodecStream(const TextCodec& codec);
  std::string add(int64_t token);
  std::string finish();

 private:
  std::optional<StreamDecoder> decoder_;
  Utf8Stream bytes_;  // of a model that reads bytes
};

// What config.json says of the tokens: bytes, or the hash of the tokenizer beside it.
std::string codec_config(const TextCodec& codec);

// The codec of a model folder with this config.json. Throws Error(config) where the tokenizer in it
// is not the one the model was trained with, or has more tokens than the model's `vocab`; nothing
// where the folder holds none and the model does not say that it reads bytes.
std::optional<TextCodec> codec_of(const std::filesystem::path& folder, const std::string& config,
                                  int64_t vocab);

// The codec of a stored model, from the vocabulary of a GGUF file; nothing where it has none.
std::optional<TextCodec> codec_of(const StoredModel& model, const std::string& file);

// Copies a tokenizer's files into a model folder.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& folder);

// Throws Error(config) where a model of `vocab` tokens cannot read through the tokenizer; `key`
// says where it was named. The message names the first token that does not fit.
void check_vocabulary(const Tokenizer& tokenizer, int64_t vocab, const std::string& key);

}  // namespace ingot
