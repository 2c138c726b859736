#pragma once

#include <string>
#include <vector>

#include "ingot/text/tokenizer.h"
#include "ingot/text/utf8_stream.h"

namespace ingot {

// Decodes ids as they arrive. The parts together are Tokenizer::decode() of all ids, and none ends
// within a character: what may yet change waits for the next id or for finish(). (Decoders that
// mark word ends, BPEDecoder and CTC, give all their text at finish().)
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {})
      : tokenizer_(&tokenizer), options_(options) {}

  std::string add(TokenId id);  // the text that is certain now; may be empty
  std::string finish();         // what still waits; the decoder may then begin anew

 private:
  std::string waiting() const;  // the text of the ids that were not given out

  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  Utf8Stream bytes_;  // byte-level: the start of a character
  TokenIds window_;   // else: ids whose text depends on one another,
  size_t shown_ = 0;  // of which so many were given out
};

}  // namespace ingot
