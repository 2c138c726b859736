#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// SentencePiece's compiled table of normalisations (`precompiled_charsmap`, google/sentencepiece,
// src/normalizer.cc): 4 bytes with the size of a trie, a Darts double-array trie of 32-bit units
// whose values are offsets, and the replacements, each ended by a NUL.
class Charsmap {
 public:
  // Throws Error(format) naming `subject` where the bytes are not such a table.
  Charsmap(std::string_view bytes, const std::string& subject);

  struct Match {
    size_t bytes = 0;  // of the text; 0: none
    std::string_view replacement;
  };
  Match longest(std::string_view text) const;
  Match shortest(std::string_view text) const;

 private:
  template <class Found>
  void walk(std::string_view text, const Found& found) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// The bytes that a Base64 text (RFC 4648, with padding) spells; nothing where it is none.
std::optional<std::string> from_base64(std::string_view text);
std::string to_base64(std::string_view bytes);

}  // namespace ingot
