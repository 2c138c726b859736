#pragma once

#include <memory>

#include "ingot/cli/loaded_model.h"
#include "ingot/nn/initialise.h"

namespace ingot::testing {

inline constexpr const char* plain_template =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% if m.role == 'assistant' %}{{ '\\n' }}{% endif %}{% endfor %}"
    "{% if tools %}[{{ tools | length }} tools]{% endif %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

// A model of random weights that reads bytes, with a chat template. It favours printable letters,
// so that texts are worth looking at.
inline LoadedModel byte_chat_model(int64_t context = 256) {
  DecoderConfig c;
  c.vocab = 256;
  c.width = 16;
  c.layers = 1;
  c.heads = 2;
  c.kv_heads = 1;
  c.context = context;
  c.tied = false;
  LoadedModel out;
  out.name = "tiny";
  out.model = std::make_unique<Decoder>(c);
  nn::initialise(*out.model, {"normal", 0.4}, 3);
  out.codec = TextCodec();
  out.chat = ChatTemplate(plain_template, {}, "plain");
  return out;
}

}  // namespace ingot::testing
