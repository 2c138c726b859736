#pragma once

#include <string>

#include "ingot/text/jinja_value.h"

namespace ingot {

// A regular expression (byte_automaton.h) of the JSON texts that a JSON Schema allows, as far as
// regular expressions can say it:
//   type: object (properties in their order, those not in `required` may be absent, no others),
//         array (items, minItems, maxItems), string (minLength, maxLength), integer, number (at
//         most 15 digits before the point and 17 behind it), boolean, null, or a list of these
//   enum, const, anyOf, oneOf (as anyOf), $ref into the same schema where it does not recur
// Between tokens stands at most one space, behind a colon or comma. Annotations are passed over.
// Throws Error(format) naming the place ("schema.properties.age") and the keyword that is not
// understood: what could not be kept is not promised.
std::string pattern_of_schema(const jinja::Value& schema);

}  // namespace ingot
