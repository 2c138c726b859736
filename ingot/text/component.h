#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ingot/text/regex.h"

namespace ingot {

// What reading the components of a tokenizer.json has in common. A component is an object with a
// "type"; `subject` names the file and the place, as "tokenizer.json: pre_tokenizer.Sequence".

// The type. Throws Error(format) where there is none, or where `depth`, of Sequences within one
// another, is too large.
std::string component_type(const nlohmann::json& component, const std::string& subject, int depth);

// The list under `key`, which must be one.
const nlohmann::json& component_list(const nlohmann::json& component, const char* key,
                                     const std::string& subject);

// The member "pattern": {"String": …}, {"Regex": …} or a plain string.
std::shared_ptr<const Regex> component_pattern(const nlohmann::json& component,
                                               const std::string& subject);

[[noreturn]] void unknown_component(const std::string& subject, const char* kind,
                                    const std::string& type);

}  // namespace ingot
