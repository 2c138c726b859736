#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingot/cli/text_codec.h"
#include "ingot/models/decoder.h"
#include "ingot/peft/adapters.h"
#include "ingot/text/chat_template.h"

namespace CLI {
class App;
}

namespace ingot {

// Where a model is, and how it is kept in memory.
struct ModelArguments {
  std::string path;                   // a folder or a GGUF file
  std::string dtype;                  // "": the file's
  std::vector<std::string> adapters;  // folders in PEFT's layout, or FOLDER=WEIGHT
  bool int8 = false;
  std::string kv = "model";  // what keys and values are kept in (generate/paged_decoding.h)
  bool text = true;          // whether its tokenizer is wanted
};
void add_model_options(CLI::App& verb, ModelArguments& arguments);

// A model that writes text: its weights, how its tokens are text, and how it was trained to
// converse.
struct LoadedModel {
  std::string name;  // of its folder or file, as clients call it
  std::unique_ptr<Decoder> model;
  std::vector<std::unique_ptr<peft::Adapters>> adapters;  // on the model
  std::optional<TextCodec> codec;                         // absent: it says nothing of its tokens
  std::optional<ChatTemplate> chat;                       // absent: a base model

  const Decoder& decoder() const { return *model; }
  // Throws Error(config) where the tokens are not text.
  const TextCodec& text() const;
  // The ids that end an answer: the tokenizer's end of sequence, and the template's stops.
  std::vector<int64_t> stops() const;
};

// Throws Error(io), Error(format) or Error(config) that name the file.
LoadedModel load_model(const ModelArguments& arguments);

// The ids of a conversation as the model's template spells it, ending where the assistant begins to
// write. Special tokens spelled in a message are text: only those of the template are tokens.
// Throws Error(config) without a template or tokenizer, Error(format) where the template refuses.
Tokens chat_tokens(const LoadedModel& loaded, const Conversation& conversation,
                   const jinja::Mapping& extra = {});

// What to do with a prompt that is longer than the context leaves room for.
enum class Truncate : uint8_t { refuse, left, right };
Truncate truncate_named(const std::string& name);  // "": refuse

// The prompt as it is read: one longer than the context is refused, or loses tokens at its left or
// right so that `room` more fit, half of the context at most. Throws Error(config) naming `prompt`.
Tokens fitted(Tokens tokens, Truncate truncate, int64_t context, int64_t room,
              const std::string& prompt);

}  // namespace ingot
