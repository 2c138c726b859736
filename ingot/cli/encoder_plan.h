#pragma once

#include "ingot/cli/encoder_recipe.h"
#include "ingot/cli/run_plan.h"

namespace ingot {

// plan_run for recipes of encoders. Of "classify" the data is read, for its classes; of "mlm" the
// number of hidden tokens of a batch is taken as high as it is once in forty batches.
RunPlan plan_run(const EncoderRecipe& recipe);
PlannedRecipe planned(const EncoderRecipe& recipe);

}  // namespace ingot
