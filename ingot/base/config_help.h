#pragma once

#include <string>

#include "ingot/base/describe.h"

namespace ingot {

// The keys of a configuration for `--help`: one line each with path, kind of value, default, range
// and help, in columns, below a line for each group.
std::string help_text(const Fields& fields);

}  // namespace ingot
