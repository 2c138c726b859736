#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/models/decoder_config.h"

namespace ingot {

// The words of a published config.json. All throw Error(config) naming the key and both sides.

// The keys of one file. A missing key means `missing`; null means the same where no other meaning
// is given. A value of another type is an Error(format).
struct ConfigKeys {
  const nlohmann::json& json;
  const std::string& file;

  bool has(const char* key) const;  // also as null
  int64_t integer(const char* key, int64_t missing) const;
  int64_t integer(const char* key, int64_t missing, int64_t of_null) const;
  // An integer from 1 to 2³⁰: what something may be allocated or looped by. Error(config)
  // otherwise.
  int64_t size(const char* key, int64_t missing) const;
  int64_t layers(const char* key, int64_t missing) const;  // from 0 to 10000
  double number(const char* key, double missing) const;
  double number(const char* key, double missing, double of_null) const;
  bool flag(const char* key, bool missing) const;
  std::string text(const char* key, const std::string& missing) const;
};

// Our activation for theirs: "gelu_new" → gelu_tanh, and "silu" → swiglu where the layer is gated.
std::string activation_from(std::string_view theirs, bool gated);
// The reverse; absent where they have no word for it.
std::optional<std::string> activation_to(std::string_view ours);
// Sets `key` to their word, or leaves one there that means the same.
void activation_to(std::string_view ours, const char* key, nlohmann::json& config);

// `rope_theta` with `rope_scaling`, or `rope_parameters` which holds both (version 5), of the
// layers without a window where they are told apart. `base` and `fraction` are what is meant
// without keys.
nn::RotaryConfig rotary_from(const nlohmann::json& config, const std::string& file,
                             double base = 10000, double fraction = 1);
// Sets these keys in the form that `config` has already, otherwise "rope_theta" and "rope_scaling"
// (null without scaling).
void rotary_to(const nn::RotaryConfig& rope, nlohmann::json& config);

// `layer_types`: the layers that have a window; absent without the key.
std::optional<std::vector<int64_t>> windowed_layers_from(const nlohmann::json& config,
                                                         int64_t layers, const std::string& file);
// Sets "layer_types" where layers differ, or where it was there.
void windowed_layers_to(const DecoderConfig& c, nlohmann::json& config);

// Refuses a switch that changes the model in a way Ingot does not compute.
void refuse_if(bool on, std::string_view key, const std::string& file);

}  // namespace ingot
