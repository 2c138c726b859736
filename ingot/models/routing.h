#pragma once

#include "ingot/models/decoder.h"
#include "ingot/nn/expert_load.h"

namespace ingot {

// Moves the corrections of a model's routers by what a step's tokens chose (nn::steer). `loads` has
// a row for each layer of experts, in order; nothing happens where it is empty (the meta device).
void steer_routers(Decoder& model, const nn::ExpertLoads& loads, double rate);

}  // namespace ingot
