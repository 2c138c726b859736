#pragma once

#include <string_view>
#include <vector>

#include "ingot/cli/recipe.h"

namespace ingot {

// Whether the objective is that of the next token, which losses beside it go with: z-loss, those of
// routers and of further tokens.
bool learns_tokens(const Recipe& recipe);

// Which keys of a recipe count in which run. A key that is set and would be passed over is an
// error: nothing in a recipe is without effect and unsaid.
struct KeyEffect {
  std::string_view pattern;              // of keys, as in TensorDict::select; the first that fits
  bool (*counts)(const Recipe& recipe);  // whether the key has an effect in this run
  std::string_view what;                 // whose key it is: "is of rows of answers"
};
const std::vector<KeyEffect>& key_effects();

// The row of a key; null where the table has none.
const KeyEffect* effect_of(std::string_view key);

// Throws Error(config) naming the first key whose value differs from `start`, what the recipe would
// be without its settings, and has no effect in this run.
void check_effects(const Recipe& start, const Recipe& recipe);

}  // namespace ingot
