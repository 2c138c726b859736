#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ingot/base/json_library.h"

namespace ingot {

// JSON with errors that say where. A source that uses the values includes <nlohmann/json.hpp>,
// which takes long to compile and therefore is not included here.

// The value that `text` spells; `name` stands for the text in messages. Throws Error(format):
// `config.json:3:14: not valid JSON: …`.
nlohmann::json parse_json(std::string_view text, const std::string& name);

// The same for a file; Error(io) where it cannot be read.
nlohmann::json parse_json_file(const std::filesystem::path& path);

// The member `key` of an object as a T: bool, int64_t, double (an integer will do), std::string, or
// a std::vector of one of these. Throws Error(format) naming `name` and the key where it is absent
// or of another type; an integer must fit 64 bits with sign.
template <class T>
T json_field(const nlohmann::json& object, std::string_view key, const std::string& name);

// The same, or `fallback` where the key is absent or null.
template <class T>
T json_field_or(const nlohmann::json& object, std::string_view key, T fallback,
                const std::string& name);

}  // namespace ingot
