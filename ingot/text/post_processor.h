#pragma once

#include <string>
#include <vector>

#include "ingot/text/vocabulary.h"

namespace ingot {

// The special tokens that a tokenizer sets around a text, as the post-processor of tokenizer.json
// tells for a single sequence.
struct Frame {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

// Reads the member `post_processor`, given as JSON: TemplateProcessing, BertProcessing,
// RobertaProcessing, ByteLevel (which adds nothing), Sequence. Throws Error(format) naming
// `subject` and the unknown or ill-formed component.
Frame read_frame(const std::string& json, const std::string& subject);

}  // namespace ingot
