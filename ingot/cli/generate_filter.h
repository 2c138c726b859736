#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/cli/loaded_model.h"
#include "ingot/generate/token_filter.h"
#include "ingot/text/jinja_value.h"

namespace ingot {

// A filter that keeps texts to a regular expression, or to a JSON Schema (a text, or the name of a
// file that holds it); null where both are empty. Each text takes a copy. Throws Error(config) for
// both at once, Error(format) naming what is not understood.
std::unique_ptr<TokenFilter> filter_for(const std::string& regex, const std::string& schema,
                                        const LoadedModel& loaded,
                                        const std::vector<int64_t>& stop_tokens);
std::unique_ptr<TokenFilter> filter_for_schema(const jinja::Value& schema,
                                               const LoadedModel& loaded,
                                               const std::vector<int64_t>& stop_tokens);

}  // namespace ingot
