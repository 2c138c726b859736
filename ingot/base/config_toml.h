#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/base/setting.h"

namespace ingot {

// Every key of a TOML text in the order of the text; `name` stands for it in messages. Throws
// Error(config) naming line and column where it is not TOML, holds a date, or lists within lists.
std::vector<Setting> toml_settings(std::string_view text, const std::string& name);
// The same for a file; Error(io) where it cannot be read.
std::vector<Setting> toml_file_settings(const std::filesystem::path& path);

// One value in TOML's spelling; absent when `text` is not exactly that.
std::optional<Value> toml_value(std::string_view text);

// The fields as TOML, each below its help and range as a comment. Reading it back gives the same
// values to the last bit. An optional field that is not set appears as a comment only.
std::string write_toml(const Fields& fields);

// Reads `path` into `config`, which keeps its values for keys that the file leaves out.
template <class Config>
void read_toml(const std::filesystem::path& path, Config& config) {
  apply_settings(fields_of(config), toml_file_settings(path));
}

template <class Config>
std::string to_toml(const Config& config) {
  Config copy = config;
  return write_toml(fields_of(copy));
}

}  // namespace ingot
