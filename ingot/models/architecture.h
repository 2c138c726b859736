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

  NameMap (*names)(const DecoderConfig& config);

  // The published names as names() spells them, from an older or shorter spelling.
  std::string (*spelled)(const std::string& published);

  // What a new model of this architecture starts from: its kinds of layers, no sizes. Without: the
  // defaults of DecoderConfig.
  DecoderConfig (*start)() = nullptr;
};

// All of them (table.cpp); the last takes every config.
std::span<const Architecture> architectures();
// Throws Error(config) naming the nearest and those there are.
const Architecture& architecture_named(std::string_view model_type);
// The one the config names if it fits, otherwise the first that does.
const Architecture& architecture_of(const DecoderConfig& config);

// "" if a complete config is of that architecture: if read() gives back what write() was given.
// Otherwise what keeps it from being.
std::string misfit_of(const Architecture& architecture, const DecoderConfig& config);
// start() of the family of that name, or the defaults of DecoderConfig.
DecoderConfig start_of(std::string_view architecture);

}  // namespace ingot
