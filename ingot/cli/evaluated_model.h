#pragma once

#include <string>

#include "ingot/cli/loaded_model.h"
#include "ingot/eval/eval_model.h"

namespace ingot {

// A model with all that an evaluation asks of it and records of it.
struct EvaluatedModel {
  std::string path;
  LoadedModel loaded;
  std::string dtype;
  std::string tokenizer_hash;  // "bytes" for byte tokens
  std::string template_hash;   // "" without

  EvalModel functions() const;  // they refer to this object
};

// A folder or a GGUF file. Throws Error(config) where it tells no tokenizer.
EvaluatedModel load_evaluated(const std::string& path, const std::string& dtype);

}  // namespace ingot
