#pragma once

#include "ingot/models/architecture.h"
#include "ingot/models/llama_layout.h"

namespace ingot {

// Gemma Team 2024, arXiv:2408.00118: norms on both sides of each half, a window in every other
// layer, softcaps of scores and logits.
Architecture gemma2_architecture();

// What Gemma 3 has too: keys that are not Llama's, of scores and of the final logits, and the parts
// of a layer.
void read_gemma2_keys(const nlohmann::json& json, const std::string& file, double logit_softcap,
                      DecoderConfig& c);
void write_gemma2_keys(const DecoderConfig& c, nlohmann::json& out);
LayerParts gemma2_parts(const DecoderConfig& c);

}  // namespace ingot
