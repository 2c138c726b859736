#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ingot/cli/text_codec.h"
#include "ingot/eval/eval_model.h"
#include "ingot/models/decoder.h"
#include "ingot/text/chat_template.h"

namespace ingot {

// A model with all that an evaluation asks of it and records of it.
struct EvaluatedModel {
  std::string path;
  std::unique_ptr<Decoder> model;
  TextCodec codec;
  std::shared_ptr<const ChatTemplate> chat;  // null where there is none
  std::string dtype;
  std::string tokenizer_hash;  // "bytes" for byte tokens
  std::string template_hash;   // "" without

  EvalModel functions() const;  // they refer to this object
};

// A folder or a GGUF file. Throws Error(config) where it tells no tokenizer.
EvaluatedModel load_evaluated(const std::string& path, const std::string& dtype);

}  // namespace ingot
