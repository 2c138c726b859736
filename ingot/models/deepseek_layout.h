#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ingot/models/llama_layout.h"

namespace ingot {

// What DeepSeek V2 and V3 share besides Llama's words: latent attention, shared experts and first
// layers that are dense.

// What a missing key means.
struct DeepseekKeys {
  int64_t experts, shared, top_k, expert_hidden, dense_first, groups, groups_kept;
  double scale;
};

// After read_usual.
void read_deepseek(const nlohmann::json& json, const std::string& file, const DeepseekKeys& missing,
                   DecoderConfig& config);
void write_deepseek(const DecoderConfig& config, const char* model_type, const char* class_name,
                    nlohmann::json& out);
NameMap deepseek_names(const DecoderConfig& config);
// The maps and norms of a layer; those of further heads (config.mtp) count on from the last layer.
LayerParts deepseek_parts(const DecoderConfig& config, int64_t layer);
// How many layers come before the first one with experts.
int64_t dense_before_experts(const DecoderConfig& config);

}  // namespace ingot
