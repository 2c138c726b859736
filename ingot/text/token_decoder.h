#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ingot {

// What tokenizer.json calls a decoder: steps that turn the spellings of tokens into text.
class TokenDecoder {
 public:
  // Reads the member `decoder`, given as JSON; with null, tokens are joined by spaces. Ingot's own
  // type "SentencePiece" decodes as that library does. Throws Error(format) naming `subject` and
  // the unknown or ill-formed component.
  TokenDecoder(const std::string& json, const std::string& subject);

  // The text of tokens, which may hold U+FFFD where bytes make no character.
  std::string text(std::vector<std::string> tokens) const;

  // All there is to do is to read the alphabet of bytes.
  bool only_bytes() const { return only_bytes_; }
  // How the last token is written may depend on tokens that follow.
  bool looks_ahead(const std::string& token) const;

 private:
  using Step = std::function<void(std::vector<std::string>& tokens)>;
  void add(const nlohmann::json& component, const std::string& subject, int depth);

  std::vector<Step> steps_;
  bool joins_by_spaces_ = false;
  bool only_bytes_ = false;
  bool has_byte_tokens_ = false;
  bool marks_word_ends_ = false;
};

}  // namespace ingot
