#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/cli/recipe.h"
#include "ingot/cli/text_codec.h"
#include "ingot/generate/generate.h"
#include "ingot/models/decoder.h"
#include "ingot/text/chat_template.h"

namespace ingot {

// A text as byte tokens and back: token i < 256 is the byte i; other tokens have no text.
Tokens byte_tokens(std::string_view text);
std::string byte_text(std::span<const int64_t> tokens);

// What config.json says of a model that reads bytes, so that other programs' models are not fed
// bytes as ids.
inline constexpr const char* byte_model_config = R"({"ingot": {"tokens": "bytes"}})";
bool reads_bytes(const std::string& config);

// The prompt and what the model writes after it. With a template the prompt is what a user says.
std::string sample_text(const Decoder& model, const TextCodec& codec, const SampleConfig& config,
                        uint64_t seed, const ChatTemplate* chat = nullptr);

}  // namespace ingot
