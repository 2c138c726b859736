#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/text/chat_template.h"
#include "ingot/text/tokenizer.h"
#include "ingot/text/train_bpe.h"

namespace ingot::testing {

// A byte-level tokenizer of some 320 tokens with an end of text, "<|end|>", and ChatML's tokens.
inline std::shared_ptr<const Tokenizer> tiny_tokenizer(std::vector<std::string> more = {}) {
  BpeTraining settings;
  settings.vocabulary = 300;
  settings.special = {"<|end|>", "<|im_start|>", "<|im_end|>"};
  settings.special.insert(settings.special.end(), more.begin(), more.end());
  BpeTrainer trainer(settings);
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += "in the beginning was the word and the light and the hello user assistant\n";
  }
  trainer.add(text);
  TokenizerSpec spec = trainer.train().tokenizer;
  spec.source = "tiny";
  spec.eos = 0;
  return std::make_shared<const Tokenizer>(std::move(spec));
}

inline std::shared_ptr<const ChatTemplate> tiny_template() {
  jinja::Mapping tokens;
  tokens.set("eos_token", "<|im_end|>");
  return std::make_shared<const ChatTemplate>(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      std::move(tokens), "tiny template");
}

}  // namespace ingot::testing
