#include "ingot/base/json_library.h"

INGOT_JSON_TEMPLATES(, nlohmann::json)
INGOT_JSON_TEMPLATES(, nlohmann::ordered_json)
