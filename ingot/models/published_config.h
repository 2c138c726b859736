#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ingot/models/decoder_config.h"

namespace ingot {

// The words of a published config.json. All throw Error(config) naming the key and both sides.

// Our activation for theirs: "gelu_new" → gelu_tanh, and "silu" → swiglu where the layer is gated.
std::string activation_from(std::string_view theirs, bool gated);
// The reverse; absent where they have no word for it.
std::optional<std::string> activation_to(std::string_view ours);

// `rope_theta` with `rope_scaling`, or `rope_parameters` which holds both (version 5).
nn::RotaryConfig rotary_from(const nlohmann::json& config, const std::string& file);
// Sets "rope_theta" and "rope_scaling" (null without scaling).
void rotary_to(const nn::RotaryConfig& rope, nlohmann::json& config);

// Refuses a switch that changes the model in a way Ingot does not compute.
void refuse_if(bool on, std::string_view key, const std::string& file);

}  // namespace ingot
