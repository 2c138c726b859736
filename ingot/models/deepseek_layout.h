#pragma once

#include "ingot/models/expert_layout.h"

namespace ingot {

// What DeepSeek V2 and V3 share besides Llama's words: latent attention, shared experts and first
// layers that are dense.

// What a missing key means.
struct DeepseekDefaults {
  int64_t experts, shared, top_k, expert_hidden, dense_first, groups, groups_kept;
  double scale;
};

void read_deepseek(const nlohmann::json& json, const std::string& file,
                   const DeepseekDefaults& missing, DecoderConfig& config);
void write_deepseek(const DecoderConfig& config, nlohmann::json& out);
// "" if a config is of either.
std::string unlike_deepseek(const DecoderConfig& config);
NameMap deepseek_names(const DecoderConfig& config);

}  // namespace ingot
