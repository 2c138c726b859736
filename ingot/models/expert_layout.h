#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ingot/models/llama_layout.h"

namespace ingot {

// What the families with experts share besides Llama's keys and names.

// output_router_logits and router_aux_loss_coef: the balance loss, which the first switches on.
void read_balance(const nlohmann::json& json, const std::string& file, DecoderConfig& config);
void write_balance(const DecoderConfig& config, nlohmann::json& out);

// The maps of an MLP, with their words for gate, up and down.
LayerParts gated_parts(const std::string& theirs, const std::string& ours,
                       const std::array<const char*, 3>& words);
// mlp.{gate,up,down}_proj, or mlp.gate, mlp.experts.N and mlp.shared_experts where the layer has
// experts.
LayerParts expert_parts(const DecoderConfig& config, int64_t layer);

}  // namespace ingot
