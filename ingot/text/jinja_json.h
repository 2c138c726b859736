#pragma once

#include <string>
#include <string_view>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

// The value that a JSON text spells, as Python's json.loads gives it: the members of an object keep
// their order, the last of equal keys counts. Throws Error(format): `<name>:3:14: not valid JSON:
// …`, also for integers beyond 64 bits, which would lose digits, and lists or objects that lie
// deeper than 400 in one another.
Value parse_json_value(std::string_view text, const std::string& name);

}  // namespace ingot::jinja
