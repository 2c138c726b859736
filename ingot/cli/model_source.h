#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ingot/models/stored_model.h"
#include "ingot/posttrain/added_tokens.h"
#include "ingot/tensor/tensor_dict.h"
#include "ingot/text/chat_template.h"
#include "ingot/text/tokenizer.h"

namespace ingot {

// A trained model to go on from, a folder in the Hugging Face layout or a GGUF file: its shape and
// weights, and how it reads text.
struct ModelSource {
  DecoderConfig config;                                           // complete
  std::string published = "{}";                                   // its config.json
  bool reads_bytes = false;                                       // every byte is a token
  std::shared_ptr<const Tokenizer> tokenizer;                     // null where it has none
  std::shared_ptr<const ChatTemplate> chat;                       // null where it has none
  std::function<TensorDict(const DecoderConfig& shape)> weights;  // for a model of that shape
};

// Throws Error(io), Error(format) or Error(config) naming the path.
DecoderConfig source_config(const std::string& path);
ModelSource open_source(const std::string& path);

// The weights of `path` for a model of this shape, f32: a dense model's upcycled where the shape
// has experts; the rows of added tokens, and those beyond the source's vocabulary, from the mean of
// its rows.
TensorDict source_weights(const std::string& path, const Decoder& model, const AddedRows& added,
                          uint64_t seed);

// The chat template in a GGUF file, with its texts of the tokens that begin and end a text; it
// stops at the file's end of a turn too. nullopt where there is none.
std::optional<ChatTemplate> stored_chat_template(const StoredModel& file, const std::string& path);

// A template by the name that a recipe gives it: "chatml", or a file. `tokenizer` tells the texts
// of the tokens that begin and end a text. Throws Error(io) or Error(format).
std::shared_ptr<const ChatTemplate> chat_template_named(const std::string& name,
                                                        const Tokenizer& tokenizer);
// The special tokens that a built-in template needs; none for a file.
std::vector<std::string> template_tokens(const std::string& name);

}  // namespace ingot
