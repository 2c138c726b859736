#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ingot {

// A configuration value as a file or a command line states it, before it meets its field.
using Scalar = std::variant<bool, int64_t, double, std::string>;
using Value = std::variant<bool, int64_t, double, std::string, std::vector<Scalar>>;

// The value in TOML's spelling, exact when read back: true, 3, 0.1, "text", [1, 2]. A double is the
// shortest decimal that rounds to it and always has a point, an exponent, or is inf or nan.
std::string text_of(const Value& value);
std::string text_of(const Scalar& value);
std::string text_of(const std::optional<Value>& value);  // "not set" when absent

// `text` between double quotes, with TOML's escapes.
std::string in_quotes(std::string_view text);

// "a boolean", "an integer", "a number", "a text", "a list".
std::string_view type_of(const Value& value);
std::string_view type_of(const Scalar& value);

}  // namespace ingot
