#pragma once

#include <string>
#include <vector>

#include "ingot/cli/text_codec.h"
#include "ingot/generate/stop_text.h"

namespace ingot {

// The text of an answer as its tokens arrive: whole characters, without the stop token that ends it
// and from the first stop string on.
class AnswerText {
 public:
  // The codec must outlive this.
  AnswerText(const TextCodec& codec, std::vector<std::string> stop_texts,
             std::vector<int64_t> stop_tokens);

  std::string add(int64_t token);                        // what is certain now
  std::string finish();                                  // what was waiting
  bool ended() const { return !stop_.found().empty(); }  // by a stop string

 private:
  CodecStream stream_;
  StopText stop_;
  std::vector<int64_t> stop_tokens_;
};

}  // namespace ingot
