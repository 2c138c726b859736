#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/base/setting.h"

namespace ingot {

// The keys of a JSON object, nested objects as groups; null unsets an optional field. `name` stands
// for the object in messages. Throws Error(config) where it is no object or lists within lists.
std::vector<Setting> json_settings(const nlohmann::json& object, const std::string& name);

// The fields as a nested JSON object; an optional field that is not set is null, an infinity is the
// text "inf" or "-inf" (which reading accepts). Reading it back gives the same values.
nlohmann::json write_json(const Fields& fields);

}  // namespace ingot
