#pragma once

#include "ingot/data/example.h"
#include "ingot/text/jinja_value.h"

namespace ingot {

// Rows that compare answers: the layouts preference, label and ranked of layout.h. Throw RowError.
Example preference_example(const jinja::Mapping& row, const RowPlace& place);
Example label_example(const jinja::Mapping& row, const RowPlace& place);
Example ranked_example(const jinja::Mapping& row, const RowPlace& place);

}  // namespace ingot
