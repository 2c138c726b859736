#pragma once

#include "ingot/cli/run.h"

namespace ingot {

// run_recipe for the recipes of cli/encoder_recipe.h: the same folder, resuming bit for bit, and at
// the end the model in the Hugging Face layout with what it does on held-out data.
bool run_encoder_recipe(const RunOptions& options);

}  // namespace ingot
