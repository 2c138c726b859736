#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "ingot/models/decoder_config.h"
#include "ingot/models/published_names.h"

namespace ingot {

// One architecture as others publish it: its config.json and its tensor names.
struct Architecture {
  std::string_view model_type;  // config.json's word for it

  // Throws Error(config) or Error(format) naming the key that is missing, mistyped or not computed;
  // `file` stands for the object in messages.
  DecoderConfig (*read)(const nlohmann::json& config, const std::string& file);

  // Sets the keys this architecture has, and leaves the others.
  void (*write)(const DecoderConfig& config, nlohmann::json& out);

  // "" if a complete config is of this architecture, otherwise what keeps it from being.
  std::string (*misfit)(const DecoderConfig& config);

  NameMap (*names)(const DecoderConfig& config);

  // The published names as names() spells them, from an older or shorter spelling.
  std::string (*spelled)(const std::string& published);
};

// All of them (table.cpp); the last takes every config.
std::span<const Architecture> architectures();
// Throws Error(config) naming those there are.
const Architecture& architecture_named(std::string_view model_type);
// The first that a complete config fits.
const Architecture& architecture_of(const DecoderConfig& config);

}  // namespace ingot
