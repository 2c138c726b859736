#pragma once

#include "ingot/base/json_library.h"
#include "ingot/cli/text_codec.h"
#include "ingot/generate/scheduler.h"

namespace ingot {

// [{"token": "text", "id": 3, "logprob": -1.2, "bytes": [..], "top_logprobs": [..]}, …] as OpenAI's
// chat interface has it, with the ids besides. A logarithm of zero is null.
nlohmann::ordered_json log_probabilities_json(const TextCodec& codec,
                                              const std::vector<Drawn>& tokens);

// JSON as a text: what is no UTF-8 becomes U+FFFD.
std::string text_of(const nlohmann::ordered_json& json);

}  // namespace ingot
