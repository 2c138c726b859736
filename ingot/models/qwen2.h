#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Yang et al. 2024, arXiv:2407.10671: Llama with biases on queries, keys and values. A window,
// where it is switched on, starts at layer max_window_layers.
Architecture qwen2_architecture();

// That window, which Qwen3 has too.
void read_late_window(const nlohmann::json& json, const std::string& file, DecoderConfig& c);
void write_late_window(const DecoderConfig& c, nlohmann::json& out);

}  // namespace ingot
