#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/cli/serve_request.h"

namespace ingot {

// Whole responses that take no writing: errors, the list of models, embeddings.

// {"error": {…}}
std::string error_body(const ApiError& error);
// {"object": "list", "data": [{"id": …, "object": "model", …}]}
std::string models_body(const std::string& name, int64_t created);
// The mean over the tokens of each input of the hidden states after the last norm, of length 1.
std::string embeddings_body(const EmbeddingRequest& request, const std::string& model,
                            const std::vector<std::vector<float>>& embeddings, int64_t tokens);

}  // namespace ingot
